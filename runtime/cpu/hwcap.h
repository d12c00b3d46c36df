// SPDX-License-Identifier: Apache-2.0
//
// getauxval, by which Linux tells what instructions its processor has; elsewhere the bits that are
// asked for, from what the system tells.
#ifndef N8_HWCAP_H
#define N8_HWCAP_H

#ifdef __linux__
#include <sys/auxv.h>
#else

#ifdef __APPLE__
#include <stddef.h>
#include <sys/sysctl.h>
#else
#include <windows.h>
#endif

enum { AT_HWCAP = 16, AT_HWCAP2 = 26 };

static inline unsigned long getauxval(int which) {
#ifdef __APPLE__
    int has = 0;
    size_t size = sizeof has;
    sysctlbyname(which == AT_HWCAP ? "hw.optional.arm.FEAT_DotProd" : "hw.optional.arm.FEAT_I8MM",
                 &has, &size, NULL, 0);
#else
    // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE; of i8mm, Windows 11 tells since its version 24H2 only.
    const int has = which == AT_HWCAP && IsProcessorFeaturePresent(43);
#endif
    return (unsigned long)(has != 0) << (which == AT_HWCAP ? 20 : 13);
}

#endif
#endif // N8_HWCAP_H
