# SPDX-License-Identifier: Apache-2.0
"""The machines that an .n8 file runs on: this one, what qemu emulates, and boards."""

import re
from dataclasses import dataclass

from neon8.errors import SettingsError

NATIVE = "native"


@dataclass(frozen=True, slots=True)
class Emulation:
    """How a machine is emulated.

    qemu: the command; cpus: cores that are worth trying, of all that qemu knows.
    """

    qemu: str
    cpus: tuple[str, ...]


EMULATIONS = {
    "aarch64": Emulation("qemu-aarch64", ("cortex-a53", "neoverse-n1", "max")),
    "armv7": Emulation("qemu-arm", ("cortex-a7", "cortex-a9", "cortex-a15", "max")),
}
"""By the name of the machine, which is also that of its builds."""

TARGETS = (NATIVE, *EMULATIONS)
DEFAULT_CPU = "max"

SSH = re.compile(
    r"ssh:((?:[\w.+-]+@)?(?:\[[\w.:%]+\]|[\w.-]+))(?::(\d{1,5}))?", re.ASCII
)
ADB = re.compile(r"adb(?::([\w.:+-]+))?", re.ASCII)
FORMS = f"{', '.join(TARGETS)}, ssh:[user@]host[:port] or adb[:serial]"


def ssh_host(target: str) -> tuple[str, int | None] | None:
    """[user@]host, as ssh takes it, and the port of an ssh: target, None of others."""
    found = SSH.fullmatch(target)
    if found is None:
        return None
    host, port = found.groups()
    return host.replace("[", "").replace("]", ""), None if port is None else int(port)


def serial_of(target: str) -> str:
    """The serial number in an adb: target; "" for the only device there is."""
    found = ADB.fullmatch(target)
    return (found and found[1]) or ""


def check_target(target: str) -> None:
    """SettingsError: it is none."""
    host = ssh_host(target)
    named = host is not None and "-" not in (host[0][0], host[0].partition("@")[2][:1])
    if host is not None and named and (host[1] is None or 0 < host[1] < 1 << 16):
        return
    adb = ADB.fullmatch(target)
    if target in TARGETS or (adb is not None and not (adb[1] or "").startswith("-")):
        return
    raise SettingsError(f"{target!r} is not one of {FORMS}")
