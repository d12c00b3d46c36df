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
    int dotprod = 0, i8mm = 0, sme = 0;
    size_t size = sizeof(int);
    sysctlbyname("hw.optional.arm.FEAT_DotProd", &dotprod, &size, NULL, 0);
    sysctlbyname("hw.optional.arm.FEAT_I8MM", &i8mm, &size, NULL, 0);
    sysctlbyname("hw.optional.arm.FEAT_SME", &sme, &size, NULL, 0);
#else
    // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE; of i8mm, Windows 11 tells since its version 24H2 only,
    // and it has nothing for SME.
    const int dotprod = IsProcessorFeaturePresent(43), i8mm = 0, sme = 0;
#endif
    return which == AT_HWCAP ? (unsigned long)(dotprod != 0) << 20
                             : (unsigned long)(i8mm != 0) << 13 | (unsigned long)(sme != 0) << 23;
}

#endif
#endif // N8_HWCAP_H
