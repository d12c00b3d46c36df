// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include "cpu.h"

#include <stdlib.h>
#include <string.h>

// Levels by the names that kernels.inc uses.
#define N8_LEVEL_c    N8_ISA_C
#define N8_LEVEL_neon N8_ISA_NEON

static enum n8_isa best_isa(void) {
    return n8_cpu_has(N8_ISA_NEON) ? N8_ISA_NEON : N8_ISA_C;
}

static enum n8_status resolve(enum n8_isa isa, enum n8_isa *out) {
    if (isa == N8_ISA_AUTO) {
        const char *wanted = getenv("N8_ISA");
        if (wanted == NULL || wanted[0] == '\0') {
            isa = best_isa();
        } else if (strcmp(wanted, "c") == 0) {
            isa = N8_ISA_C;
        } else if (strcmp(wanted, "neon") == 0) {
            isa = N8_ISA_NEON;
        } else {
            return N8_E_UNSUPPORTED;
        }
    }
    if (!n8_cpu_has(isa)) {
        return N8_E_UNSUPPORTED;
    }
    *out = isa;
    return N8_OK;
}

enum n8_status n8_kernels_select(enum n8_isa isa, struct n8_kernels *out) {
    memset(out, 0, sizeof *out);
    enum n8_status status = resolve(isa, &out->isa);
    if (status != N8_OK) {
        return status;
    }
#define N8_KERNEL(slot, level)                                                                     \
    if (N8_LEVEL_##level <= out->isa) {                                                            \
        out->slot = n8_##slot##_##level;                                                           \
        out->slot##_name = "n8_" #slot "_" #level;                                                 \
    }
#include "kernels.inc"
#undef N8_KERNEL
    return N8_OK;
}
