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

# built PRESET TARGET: builds the library and puts it into the target's folder.
built() {
    cross/build.sh "$1"
    mkdir -p "build/prebuilt/$2"
    copy "build/$1/libneon8.so" "build/prebuilt/$2/libneon8.so"
    copy "build/$1/libneon8.a" "build/prebuilt/$2/libneon8.a"
}

# java PRESET TARGET: the same with Java's methods in one file.
java() {
    N8_CMAKE=-DN8_JNI=ON cross/build.sh "$1" neon8_jni
    copy "build/$1/libneon8_jni.so" "build/prebuilt/$2/libneon8_jni.so"
}

for machine in x86_64 aarch64 armv7; do
    target=linux-$machine
    built "$target" "$target"
    cross/build.sh "$target-musl"
    copy "build/$target-musl/libneon8.a" "build/prebuilt/$target/libneon8-musl.a"
    copy "build/$target-musl/neon8-runner" "build/prebuilt/$target/neon8-runner"
done
built android-arm64-clang android-aarch64
built android-armv7-clang android-armv7
java linux-x86_64 linux-x86_64
java linux-aarch64 linux-aarch64
java android-arm64-clang android-aarch64
java android-armv7-clang android-armv7

mkdir -p build/prebuilt/include
for header in runtime/include/neon8.h*; do
    copy "$header" "build/prebuilt/include/${header##*/}"
done
