# SPDX-License-Identifier: Apache-2.0
"""Facts about an ELF library.  The only module that imports pyelftools."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from neon8.errors import SetupError

ARCHIVE_MAGIC = b"!<arch>\n"
ELF_MAGIC = b"\x7fELF"
_MEMBER_HEADER = 60
# n8_<slot>_<level><variant>, from runtime/kernels.inc; a slot ends with a type.
_KERNEL = re.compile(
    r"n8_(\w+_(?:s8|s16|s32|f32)(?:_add)?)_(?!s8|s16|s32|f32|add)([a-z0-9]+)(_\w+)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Facts.  machine: as in 'AArch64'; exports: what a program may call, sorted.

    kernels: instruction set -> slots and variants, None if the symbols were stripped;
    alignment: of the LOAD segments, 0 for an archive; needed: libraries that it loads;
    compiler: as it names itself, "" if that was stripped.
    """

    kind: str
    machine: str
    members: int
    exports: tuple[str, ...]
    kernels: dict[str, tuple[str, ...]] | None
    alignment: int
    needed: tuple[str, ...]
    executable_stack: bool
    text_relocations: bool
    compiler: str


def read(source: str, data: bytes) -> Library:
    """The facts about a shared library or an archive of objects; `source` for errors.

    SetupError: it is neither, or it is damaged.
    """
    try:
        if data.startswith(ARCHIVE_MAGIC):
            return _archive(source, data)
        return _facts(ELFFile(io.BytesIO(data)), "shared library")
    except SetupError:
        raise
    except Exception as error:
        # pyelftools lets through whatever its parser stumbles over.
        raise SetupError(f"{source}: a damaged ELF file ({error})") from error


def _archive(source: str, data: bytes) -> Library:
    objects = [
        _facts(ELFFile(io.BytesIO(member)), "static library")
        for member in _members(source, data)
        if member.startswith(ELF_MAGIC)
    ]
    if not objects:
        raise SetupError(f"{source}: an archive without ELF objects")
    machines = {part.machine for part in objects}
    if len(machines) > 1:
        raise SetupError(f"{source}: objects of several machines: {sorted(machines)}")
    kernels: dict[str, tuple[str, ...]] = {}
    for part in objects:
        for isa, slots in (part.kernels or {}).items():
            kernels[isa] = tuple(sorted({*kernels.get(isa, ()), *slots}))
    return replace(
        objects[0],
        members=len(objects),
        exports=tuple(sorted({name for part in objects for name in part.exports})),
        kernels=dict(sorted(kernels.items())),
        executable_stack=any(part.executable_stack for part in objects),
    )


def _members(source: str, data: bytes) -> Iterator[bytes]:
    """The files in an archive of the common (System V and GNU) format."""
    offset = len(ARCHIVE_MAGIC)
    while offset < len(data):
        header = data[offset : offset + _MEMBER_HEADER]
        size_text = header[48:58].strip()
        offset += _MEMBER_HEADER
        if header[58:] != b"`\n" or not size_text.isdigit():
            raise SetupError(f"{source}: a damaged archive at byte {offset}")
        size = int(size_text)
        if size > len(data) - offset:
            raise SetupError(f"{source}: the archive is cut off")
        yield data[offset : offset + size]
        offset += size + size % 2


def _facts(elf: ELFFile, kind: str) -> Library:
    symbols = list(_symbols(elf))
    shared = kind == "shared library"
    exported = [
        name for table, name, visible in symbols if visible and (table or not shared)
    ]
    kernels: dict[str, set[str]] = {}
    for table, name, _ in symbols:
        match = _KERNEL.fullmatch(name)
        if match and not table:
            kernels.setdefault(match[2], set()).add(match[1] + (match[3] or ""))
    segments = list(elf.iter_segments())
    dynamic: list[Any] = [
        tag
        for segment in segments
        if isinstance(segment, DynamicSegment)
        for tag in segment.iter_tags()
    ]
    return Library(
        kind=kind,
        machine=str(elf.get_machine_arch()),
        members=1,
        exports=tuple(sorted({n for n in exported if n.startswith("n8_")})),
        kernels={isa: tuple(sorted(slots)) for isa, slots in sorted(kernels.items())}
        or None,
        alignment=min(
            (s.header.p_align for s in segments if s.header.p_type == "PT_LOAD"),
            default=0,
        ),
        needed=tuple(t.needed for t in dynamic if t.entry.d_tag == "DT_NEEDED"),
        executable_stack=_executable_stack(elf, shared=shared),
        text_relocations=any(t.entry.d_tag == "DT_TEXTREL" for t in dynamic),
        compiler=_compiler(elf),
    )


def _compiler(elf: ELFFile) -> str:
    section = elf.get_section_by_name(".comment")
    names = section.data().split(b"\0") if section else []
    known = dict.fromkeys(name.decode(errors="replace") for name in names if name)
    return ", ".join(known)


def _symbols(elf: ELFFile) -> Iterator[tuple[bool, str, bool]]:
    """(in the dynamic table, name, visible from outside) of every defined function."""
    for section in elf.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for symbol in section.iter_symbols():
            entry = symbol.entry
            if entry.st_info.type == "STT_FUNC" and entry.st_shndx != "SHN_UNDEF":
                visible = (
                    entry.st_info.bind == "STB_GLOBAL"
                    and entry.st_other.visibility == "STV_DEFAULT"
                )
                yield section.name == ".dynsym", symbol.name, visible


def _executable_stack(elf: ELFFile, *, shared: bool) -> bool:
    """Whether it asks for one: by its segment or, in an object, by its note section."""
    if shared:
        stacks = [s for s in elf.iter_segments() if s.header.p_type == "PT_GNU_STACK"]
        return not stacks or any(s.header.p_flags & 1 for s in stacks)
    note = elf.get_section_by_name(".note.GNU-stack")
    return note is None or bool(note.header.sh_flags & 4)
