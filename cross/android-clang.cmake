# SPDX-License-Identifier: Apache-2.0
#
# Android, where there is no NDK: N8_ZIG_TARGET as cross/zig-cc takes it. Not CMake's own Android, which
# asks for an NDK; what is linked is the same.
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
execute_process(
    COMMAND "${CMAKE_CURRENT_LIST_DIR}/android/sysroot.sh" ${N8_ZIG_TARGET}
    COMMAND_ERROR_IS_FATAL ANY
)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
    string(APPEND CMAKE_C_FLAGS_INIT " -meabi gnu") # memcpy, which libc.so has, and not __aeabi_memcpy
endif()
set(CMAKE_PLATFORM_NO_VERSIONED_SONAME ON)
string(APPEND CMAKE_SHARED_LINKER_FLAGS_INIT " -Wl,-z,max-page-size=16384")
