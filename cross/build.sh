#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# build.sh PRESET [TARGET]: configures build/PRESET and builds the target, by default all of them;
# shows the log only if that fails. N8_CMAKE: a further option for CMake, which it then keeps.
set -eu
cd "$(dirname "$0")/../runtime"
mkdir -p ../build/logs
echo "build: $1"
log=../build/logs/build-$1.log
exec 9>>"$log"
flock 9 # who builds the same at once waits
{ cmake --preset "$1" ${N8_CMAKE:+"$N8_CMAKE"} && cmake --build --preset "$1" ${2:+--target "$2"}; } >"$log" 2>&1 || {
    cat "$log" >&2
    exit 1
}
