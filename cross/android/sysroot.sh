#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# sysroot.sh TARGET: makes build/android/TARGET, headers and libraries to compile and link with where
# there is no NDK. The libraries have the names and versions of bionic's functions, but no code.
set -eu
here=$(cd "${0%/*}" && pwd)
root=$here/../../build/android/$1
if [ "$root/done" -nt "$here/bionic.h" ] && [ "$root/done" -nt "$0" ]; then
    exit
fi
mkdir -p "$root/include/sys" "$root/lib"
cp "$here/bionic.h" "$root/include"
for header in math pthread stdio stdlib string sys/auxv sys/types time unistd; do
    echo '#include <bionic.h>' >"$root/include/$header.h"
done

# Each line of the header declares one function, and a comment says of which headers those that
# follow are.
awk -v root="$root/lib" '
    /^\/\/ / { library = $2 ~ /^math/ ? "m" : "c" }
    /^[A-Za-z].*\)/ && match($0, /[a-z_0-9]+\(/) {
        name = substr($0, RSTART, RLENGTH - 1)
        printf ".globl %s\n.type %s, %%function\n%s:\n", name, name, name >(root "/" library ".s")
    }' "$here/bionic.h"
echo 'LIBC { global: *; };' >"$root/lib/versions"
for library in c m; do
    "$here/../zig-cc" "--target=$1" -c "$root/lib/$library.s" -o "$root/lib/$library.o"
    "$here/../zig-ld" -shared -soname "lib$library.so" --version-script "$root/lib/versions" \
        "$root/lib/$library.o" -o "$root/lib/lib$library.so"
done
touch "$root/done"
