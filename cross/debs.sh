#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# debs.sh [FOLDER]: packs what `make prebuilt` has built as Debian packages, by default into
# build/debs.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/debs}
umask 022

# pack BUILD COMPONENTS
pack() {
    log=build/logs/debs-$1.log
    cpack --config "build/$1/CPackConfig.cmake" -B "$folder" -D "CPACK_COMPONENTS_ALL=$2" \
        >"$log" 2>&1 || {
        cat "$log" >&2
        exit 1
    }
}

for machine in x86_64 aarch64 armv7; do
    pack "linux-$machine" "runtime;development"
    pack "linux-$machine-musl" tools
done
rm -rf "$folder/_CPack_Packages"
