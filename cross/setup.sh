#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# setup.sh [COMMAND:PACKAGE...]: installs what this checkout needs and this machine lacks,
# and the given commands: tools through apt, as root or with sudo, and Python packages into
# .venv: those of the extra $N8_EXTRA of pyproject.toml, by default test, which has them all;
# none where that is empty.
# Does nothing, and needs no network, when all is there.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin # where sshd is
mkdir -p build
exec 8>build/apt.lock 9>build/setup.lock # make -j2: apt and pip each bear one at a time

# Does `$1` compile an empty program, so that the C library's headers are there, too?
compiles() {
    echo 'int main(void) { return 0; }' |
        "$1" -x c -include stdio.h -o /dev/null - 2>/dev/null
}

# missing [COMMAND:PACKAGE...]: prints the Debian packages that are missing.
missing() {
    for pair in make:make cmake:cmake ninja:ninja-build qemu-aarch64:qemu-user \
        qemu-arm:qemu-user "$@"; do
        command -v "${pair%%:*}" >/dev/null || echo "${pair#*:}"
    done
    compiles gcc || echo gcc libc6-dev
    compiles aarch64-linux-gnu-gcc || echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    compiles arm-linux-gnueabihf-gcc || echo gcc-arm-linux-gnueabihf libc6-dev-armhf-cross
    python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3 python3-venv
}

# by_hand CAUSE PACKAGES: gives up.
by_hand() {
    echo "cross/setup.sh: $1. Install these Debian packages by hand and try again: $2" >&2
    exit 1
}

[ -z "$(missing "$@")" ] || flock 8
packages=$(missing "$@" | tr '\n' ' ')
if [ -n "$packages" ]; then
    sudo=
    command -v apt-get >/dev/null || by_hand "there is no apt-get" "$packages"
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || by_hand "neither root nor sudo" "$packages"
        sudo=sudo
    fi
    echo "setup: installing $packages"
    log=$(mktemp)
    # An update that fails for a foreign source may still have all that is needed here.
    $sudo apt-get update -q >"$log" 2>&1 || true
    # shellcheck disable=SC2086 # the packages are words
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
        --no-install-recommends $packages >>"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        by_hand "apt-get failed" "$packages"
    }
    rm -f "$log"
    packages=$(missing "$@" | tr '\n' ' ')
    [ -z "$packages" ] || by_hand "still missing" "$packages"
fi
exec 8>&- # pip need not wait for what others install

[ -n "${N8_EXTRA-test}" ] || exit 0
flock 9

python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "cross/setup.sh: $(command -v python3) is older than Python 3.10" >&2
    exit 1
}

# Installs torch unless that brings what GPUs need, which takes several GB; without it the tests of
# neon8.qat are skipped.
install_torch() {
    torch=$(sed -n 's/^qat = \["\(.*\)"\].*/\1/p' pyproject.toml)
    report=$(mktemp)
    cause="pip cannot say what it would bring"
    if .venv/bin/python -m pip install --quiet --disable-pip-version-check --dry-run \
        --report "$report" "$torch"; then
        cause="pip offers the build for GPUs"
        if ! grep -Eq '"name": *"(cuda|nvidia|triton)' "$report"; then
            cause=
            .venv/bin/python -m pip install --quiet --disable-pip-version-check "$torch"
        fi
    fi
    rm -f "$report"
    [ -z "$cause" ] || echo "setup: no torch: $cause; the tests of neon8.qat will be skipped." \
        "Point pip to the build for processors and install '$torch' into .venv to run them."
}

# .venv follows pyproject.toml, and is made anew where the checkout was moved.
extra=${N8_EXTRA-test}
stamp="$(pwd) $(cksum <pyproject.toml)"
old=$(cat .venv/stamp 2>/dev/null || true)
case $old in "$stamp test" | "$stamp $extra") there=yes ;; *) there= ;; esac
if [ -z "$there" ] || ! .venv/bin/python -c '' 2>/dev/null; then
    echo "setup: installing Python packages into .venv"
    case $old in
    "$(pwd) "*) .venv/bin/python -m pip --version >/dev/null 2>&1 || old= ;;
    *) old= ;;
    esac
    [ -n "$old" ] || python3 -m venv --clear .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$extra]"
    [ "$extra" != test ] || install_torch
    echo "$stamp $extra" >.venv/stamp
fi
