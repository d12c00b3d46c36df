#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# qemu.sh: makes build/qemu/qemu-aarch64, a qemu that computes what level sme needs: this system's
# own from version 10 on, else that of Debian 13, a static program, through an apt state of our own.
# That of Debian 12 (7.2) has SME, with wrong products. Does nothing when it is there.
set -eu
cd "$(dirname "$0")/.."
made=build/qemu
[ ! -x "$made/qemu-aarch64" ] || exit 0
version=$(qemu-aarch64 --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
mkdir -p "$made"
if [ "$version" -ge 10 ]; then
    ln -sf "$(command -v qemu-aarch64)" "$made/qemu-aarch64"
    exit 0
fi
state=$PWD/$made/apt
mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
: >"$state/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
    "http://deb.debian.org/debian trixie main" >"$state/sources.list"
apt() {
    apt-get -q -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache" \
        -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Acquire::Languages=none "$@"
}
log=$state/log
(apt update && cd "$state" && apt download qemu-user && dpkg -x qemu-user_*.deb .) >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    echo "cross/qemu.sh: no qemu of Debian 13 to be had" >&2
    exit 1
}
mv "$state/usr/bin/qemu-aarch64" "$made/qemu-aarch64"
rm -rf "$state"
echo "qemu: $("$made/qemu-aarch64" --version | head -n 1)"
