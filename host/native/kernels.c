// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#ifdef __x86_64__
static enum n8c_isa best(void) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return N8C_ISA_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return N8C_ISA_AVX2;
    return N8C_ISA_C;
}
#else
static enum n8c_isa best(void) {
    return N8C_ISA_C;
}
#endif

enum n8c_status n8c_kernels_select(enum n8c_isa isa, struct n8c_kernels *out) {
    if (isa == N8C_ISA_AUTO)
        isa = best();
    if (isa > best())
        return N8C_E_UNSUPPORTED;
    switch (isa) {
#ifdef __x86_64__
    case N8C_ISA_AVX512:
        *out = (struct n8c_kernels){n8c_add_avx512, n8c_bins_avx512, n8c_activate_avx512};
        return N8C_OK;
    case N8C_ISA_AVX2:
        *out = (struct n8c_kernels){n8c_add_avx2, n8c_bins_avx2, n8c_activate_avx2};
        return N8C_OK;
#endif
    case N8C_ISA_C:
        *out = (struct n8c_kernels){n8c_add_c, n8c_bins_c, n8c_activate_c};
        return N8C_OK;
    default:
        return N8C_E_ARGUMENT;
    }
}
