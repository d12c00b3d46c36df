// SPDX-License-Identifier: Apache-2.0
#include "cpu.h"

bool n8_cpu_has(enum n8_isa isa) {
    switch (isa) {
    case N8_ISA_C:
        return true;
    case N8_ISA_NEON:
#if defined(__aarch64__)
        return true; // Advanced SIMD is part of every Armv8-A Linux and Android ABI
#else
        return false;
#endif
    default:
        return false;
    }
}
