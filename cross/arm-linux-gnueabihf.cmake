# SPDX-License-Identifier: Apache-2.0
#
# GNU cross compiler for 32-bit ARM Linux, ARMv7-A with hard float. What is built runs under qemu;
# on a board only the emulator goes away. N8_QEMU_CPU (cortex-a9, cortex-a15, max) picks the
# processor.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_ASM_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR "${CMAKE_CURRENT_LIST_DIR}/run-armv7")
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
