#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# prebuilt.sh: makes build/prebuilt, the library and its headers for all targets of
# host/neon8/prebuilt.py, out of build folders that are kept.
set -eu
cd "$(dirname "$0")/.."

# copy FILE TO: replaces the file at once, and only where it differs.
copy() {
    cmp -s "$1" "$2" || {
        cp -L "$1" "$2.new"
        mv "$2.new" "$2"
    }
}

for machine in x86_64 aarch64 armv7; do
    target=linux-$machine
    folder=build/prebuilt/$target
    mkdir -p "$folder"
    cross/build.sh "$target"
    cross/build.sh "$target-musl"
    copy "build/$target/libneon8.so" "$folder/libneon8.so"
    copy "build/$target/libneon8.a" "$folder/libneon8.a"
    copy "build/$target-musl/libneon8.a" "$folder/libneon8-musl.a"
done

mkdir -p build/prebuilt/include
for header in runtime/include/neon8.h*; do
    copy "$header" "build/prebuilt/include/${header##*/}"
done
