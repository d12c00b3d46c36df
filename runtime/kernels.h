// SPDX-License-Identifier: Apache-2.0
//
// The kernels that one model uses: chosen once, from kernels.inc.
#ifndef N8_KERNELS_H
#define N8_KERNELS_H

#include "include/neon8.h"
#include "kernel.h"

struct n8_kernels {
    enum n8_isa isa;
#define N8_MEMBER(slot, type)                                                                      \
    type *slot;                                                                                    \
    const char *slot##_name;
    N8_SLOTS(N8_MEMBER)
#undef N8_MEMBER
};

// Fills `out` with the best kernels up to level `isa`. N8_ISA_AUTO reads the environment
// variable N8_ISA. N8_E_UNSUPPORTED: this processor lacks the level, or N8_ISA is no level.
enum n8_status n8_kernels_select(enum n8_isa isa, struct n8_kernels *out);

#endif // N8_KERNELS_H
