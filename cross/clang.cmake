# SPDX-License-Identifier: Apache-2.0
#
# Clang instead of GCC: the newest that is installed.
foreach(version RANGE 40 11 -1)
    list(APPEND names clang-${version})
endforeach()
find_program(N8_CLANG NAMES ${names} clang REQUIRED)
set(CMAKE_C_COMPILER "${N8_CLANG}")
set(CMAKE_ASM_COMPILER "${N8_CLANG}")
