// SPDX-License-Identifier: Apache-2.0
#include "scan.h"

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

enum n8c_status n8c_scan_select(enum n8c_isa isa, n8c_scan **out) {
    if (isa == N8C_ISA_AUTO)
        isa = best();
    if (isa > best())
        return N8C_E_UNSUPPORTED;
    switch (isa) {
#ifdef __x86_64__
    case N8C_ISA_AVX512:
        *out = n8c_scan_avx512;
        return N8C_OK;
    case N8C_ISA_AVX2:
        *out = n8c_scan_avx2;
        return N8C_OK;
#endif
    case N8C_ISA_C:
        *out = n8c_scan_c;
        return N8C_OK;
    default:
        return N8C_E_ARGUMENT;
    }
}
