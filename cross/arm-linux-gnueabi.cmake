# SPDX-License-Identifier: Apache-2.0
#
# GNU cross compiler for 32-bit ARM Linux by Android's calling convention: floats are passed in core
# registers, and VFP and NEON compute with them. The C library is Debian's armel, which has that
# convention. What is built runs under qemu; N8_QEMU_CPU (cortex-a9, cortex-a15, max) picks the
# processor.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7)
set(CMAKE_C_COMPILER arm-linux-gnueabi-gcc)
set(CMAKE_ASM_COMPILER arm-linux-gnueabi-gcc)
set(CMAKE_C_FLAGS_INIT "-march=armv7-a -mfpu=neon -mfloat-abi=softfp")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
set(CMAKE_CROSSCOMPILING_EMULATOR "${CMAKE_CURRENT_LIST_DIR}/run-armv7")
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
