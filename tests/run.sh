#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Every test there is, each step with a heading and a log in build/logs; all run even when one
# fails, and the summary comes last. Most steps keep one processor busy, so two run at once.
set -uom pipefail
cd "$(dirname "$0")/.."
mkdir -p build/logs
python=$PWD/.venv/bin/python
qemu=$PWD/build/qemu/qemu-aarch64 # cross/qemu.sh
# A processor with all levels, which in streaming mode runs no more than any that has it.
streams=max,sme_fa64=off
max=$streams,sme-default-vector-length=64 # bytes, as known processors have
summary=() failed=0 skipped=
declare -A running=() # process -> name, and the second in which it began
trap 'for process in "${!running[@]}"; do kill -- "-$process"; done' EXIT
trap 'exit 130' INT TERM

log_of() { # NAME
    echo "build/logs/${1//[^a-z0-9]/-}.log"
}

# verdict NAME SECOND STATUS: what became of a step that began then.
verdict() {
    local word=passed
    [ "$3" = 0 ] || { word=FAILED failed=1; }
    summary+=("$(printf '%-34s %s %4d s' "$1" "$word" $((SECONDS - $2)))")
}

# step NAME COMMAND...: alone, seen as it goes.
step() {
    local name=$1 start=$SECONDS
    shift
    rest
    echo
    echo "=== $name"
    "$@" 2>&1 | tee "$(log_of "$name")"
    verdict "$name" "$start" $?
}

# beside NAME COMMAND...: with others, $at_once of them in all, seen when it has ended.
beside() {
    local name=$1
    shift
    [ ${#running[@]} -lt "$at_once" ] || ended
    "$@" >"$(log_of "$name")" 2>&1 &
    running[$!]="$SECONDS $name"
}

# Waits for one of the steps that run.
ended() {
    local process status name start
    wait -n -p process
    status=$?
    start=${running[$process]%% *} name=${running[$process]#* }
    unset "running[$process]"
    echo
    echo "=== $name"
    cat "$(log_of "$name")"
    verdict "$name" "$start" "$status"
}

# Waits for all of them.
rest() {
    while [ ${#running[@]} -gt 0 ]; do
        ended
    done
}

# ctest keeps what it saw last in the build's folder, where two at once would meet.
checks() { # PRESET [CTEST OPTIONS]
    local preset=$1
    shift
    (cd runtime && flock "../build/$preset/ctest.lock" ctest --preset "$preset" "$@")
}

kernels() { # MACHINE PRESET LEVEL...
    local machine=$1 preset=$2 level
    shift 2
    for level in "$@"; do
        "cross/run-$machine" "build/$preset/tests/checkasm/checkasm" --kernel "$level" || return
    done
}

# levels COMPILER: all for its processors in levels.inc, that of C apart and what is skipped.
levels() {
    "$1" -E -P -x c runtime/levels.inc | sed -n 's/^N8_LEVEL(\([a-z0-9]*\),.*/\1/p' |
        grep -vx -e c -e "$skipped"
}

# Kernels do the same on every processor that has them, as none uses more than the ELF audit allows:
# they are compared where branches must land where they may. Files are damaged where sanitizers look,
# and where pointers have 32 bits.
on_plain() { # MACHINE
    checks "$1" -E '^(checkasm|layers|fuzz_.*)$'
}

beyond_c() { # MACHINE LEVEL...
    kernels "$1" "$@" && checks "$1" -R '^(layers|lazy_save_check)$'
}

# Level sme with vectors of other lengths than elsewhere.
on_sme() {
    N8_QEMU_CPU=$streams,sme-default-vector-length=16 kernels aarch64 aarch64 sme &&
        N8_QEMU_CPU=$streams,sme-default-vector-length=32 kernels aarch64 aarch64 sme
}

# With half of the same examples, without what is about the tests themselves or Python alone, and
# without what plans are good for: one test shows that they are the same on every machine.
emulated() { # MACHINE [PYTEST OPTIONS]
    local machine=$1
    shift
    N8_LIBRARY=$PWD/build/$machine/libneon8.so PYTHONPATH=$PWD/host \
        "cross/run-$machine" "$PWD/build/sysroot/$machine/usr/bin/python3" \
        -m pytest -p no:cacheprovider --hypothesis-profile=half tests/e2e \
        --ignore=tests/e2e/test_generator.py \
        -k "not (close_to_its_bound or lose_nothing or same_file)" "$@"
}

# What steps build of their own; two that want the same wait for each other.
built() { # PRESET [TARGET]
    cross/build.sh "$@"
}

prepared() {
    cross/setup.sh && "$python" cross/sysroot.py || return
    cross/qemu.sh || true # without it the summary says what was skipped
}

built_for_most() {
    built native && built aarch64 && built armv7
}

under_sanitizers() {
    built native-asan && checks native-asan
}

by_clang() { # MACHINE
    built "linux-$1-musl" checkasm && kernels "$1" "linux-$1-musl" neon
}

by_clang_here() {
    built native-clang && build/native-clang/tests/checkasm/checkasm &&
        N8_LIBRARY=$PWD/build/native-clang/libneon8.so \
            "$python" -m pytest -p no:cacheprovider --hypothesis-profile=half tests/e2e \
            --ignore=tests/e2e/test_generator.py
}

softfp() {
    built armv7-softfp && kernels armv7 armv7-softfp $(levels arm-linux-gnueabihf-gcc)
}

threads() {
    built native-tsan && checks native-tsan
}

packages() {
    make --no-print-directory java wheels WHEELS="$wheels" && "$python" -m pytest tests/packages
}

elf() {
    built armv7-softfp && built linux-aarch64-musl && built linux-armv7-musl &&
        "$python" -m pytest tests/elf
}

export CMAKE_BUILD_PARALLEL_LEVEL=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 # as two steps run at once
unset PYTHONDONTWRITEBYTECODE # what starts hundreds of times is compiled once
# One for each machine and C library.
wheels="manylinux_2_17_x86_64 manylinux_2_17_armv7l musllinux_1_2_aarch64"
step "compilers" env N8_EXTRA= cross/setup.sh
# Of these three, two wait for the network.
at_once=3
beside "tools" make --no-print-directory tools
beside "set-up" prepared
beside "builds" built_for_most
rest
at_once=2
[ "$failed" = 0 ] || exit 1
[ -x "$qemu" ] || qemu='' skipped=sme
# Those that take longest come first, and no two of one build follow each other.
beside "host" "$python" -m pytest tests/host
beside "packages" packages
N8_QEMU_CPU=cortex-a9 beside "e2e emulated armv7" emulated armv7
# Files are read as on 64 bits here.
N8_QEMU=$qemu N8_QEMU_CPU=$max beside "e2e emulated aarch64" emulated aarch64 --ignore=tests/e2e/test_refusals.py
beside "by clang" by_clang_here
N8_QEMU=$qemu N8_QEMU_CPU=$max beside "beyond c on aarch64 max" \
    beyond_c aarch64 $(levels aarch64-linux-gnu-gcc)
[ -n "$skipped" ] || N8_QEMU=$qemu beside "sme on aarch64" on_sme
beside "c under asan and ubsan" under_sanitizers
N8_QEMU_CPU=cortex-a9 beside "c on armv7 cortex-a9" checks armv7
N8_QEMU_CPU=cortex-a53 beside "c on aarch64 cortex-a53" on_plain aarch64
N8_SYSROOT=/usr/arm-linux-gnueabi N8_QEMU_CPU=cortex-a9 beside "neon on armv7 softfp" softfp
beside "elf audit" elf
# The ELF audit shows that Clang makes the same of the assembly.
N8_QEMU_CPU=cortex-a9 beside "c by clang on armv7" by_clang armv7
N8_QEMU_CPU=cortex-a53 beside "c by clang on aarch64" by_clang aarch64
beside "sessions under tsan" threads
beside "e2e native" "$python" -m pytest tests/e2e
beside "docs" make --no-print-directory docs
beside "lint" tests/lint.sh
rest

echo
echo "=== summary"
printf '%s\n' "${summary[@]}"
"$python" -c 'import torch' 2>/dev/null || echo "skipped: what needs torch, see cross/setup.sh"
[ -z "$skipped" ] || echo "skipped: level $skipped, see cross/qemu.sh"
echo "total ${SECONDS} s; logs in build/logs"
exit "$failed"
