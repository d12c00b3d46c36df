# SPDX-License-Identifier: Apache-2.0
#
# Android by the NDK's own toolchain file.
set(ndk "$ENV{ANDROID_NDK_HOME}/build/cmake/android.toolchain.cmake")
if(NOT EXISTS "${ndk}")
    message(
        FATAL_ERROR
        "ANDROID_NDK_HOME is not the folder of an NDK: there is no ${ndk}. Without an NDK, "
        "the presets android-arm64-clang and android-armv7-clang build the library."
    )
endif()
include("${ndk}")
