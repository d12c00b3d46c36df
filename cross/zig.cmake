# SPDX-License-Identifier: Apache-2.0
#
# A Linux with an old C library, or with none: N8_ZIG_TARGET is a target of cross/zig-cc.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES N8_ZIG_TARGET)
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${N8_ZIG_TARGET}")
file(GLOB zig "${CMAKE_CURRENT_LIST_DIR}/../.venv/lib/python3*/site-packages/ziglang/zig")
if(DEFINED ENV{N8_ZIG})
    set(zig "$ENV{N8_ZIG}")
elseif(NOT zig)
    message(FATAL_ERROR "PyPI's ziglang is missing: run `make prebuilt`, or let N8_ZIG name a zig")
endif()
set(CMAKE_C_ARCHIVE_CREATE "\"${zig}\" ar qc <TARGET> <OBJECTS>") # that of binutils knows its own
set(CMAKE_C_ARCHIVE_FINISH "\"${zig}\" ar s <TARGET>") # machine only
foreach(language IN ITEMS C ASM)
    set(CMAKE_${language}_COMPILER "${CMAKE_CURRENT_LIST_DIR}/zig-cc")
    set(CMAKE_${language}_COMPILER_TARGET ${N8_ZIG_TARGET})
endforeach()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
    set(CMAKE_C_FLAGS_INIT "-mthumb") # the smaller code, as distributions have it
endif()
# What is shipped has no names that only debuggers read.
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-s")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s")
