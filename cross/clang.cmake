# SPDX-License-Identifier: Apache-2.0
#
# Clang instead of GCC: the newest that is installed. N8_CLANG_TARGET: aarch64-linux-gnu or
# arm-linux-gnueabihf, with the C library and emulator of that GNU cross compiler; without it, this
# machine.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES N8_CLANG_TARGET)
if(N8_CLANG_TARGET)
    include("${CMAKE_CURRENT_LIST_DIR}/${N8_CLANG_TARGET}.cmake")
    set(CMAKE_C_COMPILER_TARGET ${N8_CLANG_TARGET})
    set(CMAKE_ASM_COMPILER_TARGET ${N8_CLANG_TARGET})
endif()
foreach(version RANGE 40 11 -1)
    list(APPEND names clang-${version})
endforeach()
find_program(N8_CLANG NAMES ${names} clang REQUIRED)
set(CMAKE_C_COMPILER "${N8_CLANG}")
set(CMAKE_ASM_COMPILER "${N8_CLANG}")
