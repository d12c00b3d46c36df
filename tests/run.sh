#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every test there is, in order, each with a heading and a log in build/logs; all run even
# when one fails, and the summary comes last.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/logs
python=$PWD/.venv/bin/python
summary=() failed=0

# step NAME COMMAND...
step() {
    local name=$1 start=$SECONDS verdict=passed
    shift
    echo
    echo "=== $name"
    "$@" 2>&1 | tee "build/logs/${name//[^a-z0-9]/-}.log" || { verdict=FAILED failed=1; }
    summary+=("$(printf '%-34s %s %4d s' "$name" "$verdict" $((SECONDS - start)))")
}

checks() { # PRESET [CTEST OPTIONS]
    local preset=$1
    shift
    (cd runtime && ctest --preset "$preset" "$@")
}

emulated() { # MACHINE [PYTEST OPTIONS]
    local machine=$1
    shift
    N8_LIBRARY=$PWD/build/$machine/libneon8.so PYTHONPATH=$PWD/host \
        "cross/run-$machine" "$PWD/build/sysroot/$machine/usr/bin/python3" \
        -m pytest -p no:cacheprovider "$@"
}

step "set-up" make --no-print-directory native native-asan native-tsan aarch64 armv7 sysroot
[ "$failed" = 0 ] || exit 1
step "lint" tests/lint.sh
step "c under asan and ubsan" checks native-asan
step "sessions under tsan" checks native-tsan
N8_QEMU_CPU=cortex-a53 step "c on aarch64 cortex-a53" checks aarch64
# The reader plans as on one of the other two; damaging every byte once more takes minutes. Kernels
# in C do the same on all three.
N8_QEMU_CPU=neoverse-n1 step "c on aarch64 neoverse-n1" checks aarch64 -E 'fuzz_reader|checkasm_vector'
N8_QEMU_CPU=max step "c on aarch64 max" checks aarch64 -E checkasm_vector
step "host" "$python" -m pytest -n 2 tests/host
step "e2e native" "$python" -m pytest tests/e2e
step "e2e emulated aarch64" emulated aarch64 tests/e2e
step "e2e emulated armv7" emulated armv7 tests/e2e
step "elf audit" "$python" -m pytest tests/elf

echo
echo "=== summary"
printf '%s\n' "${summary[@]}"
echo "total ${SECONDS} s; logs in build/logs"
exit "$failed"
