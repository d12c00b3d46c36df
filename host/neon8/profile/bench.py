# SPDX-License-Identifier: Apache-2.0
"""How long a board takes for a model: bench_model()."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neon8.arrays import Array
from neon8.machines import EMULATIONS
from neon8.profile.measured import (
    Bench,
    Counts,
    Kind,
    Part,
    Row,
    State,
    Times,
    digest,
)
from neon8.progress import Count, nobody
from neon8.runtime.board import batch
from neon8.runtime.board.board import Board, link_to, online
from neon8.runtime.board.model import BoardModel
from neon8.runtime.model import Model, read_model
from neon8.settings.reader import takes
from neon8.settings.shapes import fixed
from neon8.settings.stages import DEFAULTS, Settings
from neon8.version import __version__

ARM = 0x41
CORES = {
    0xC07: "cortex-a7",
    0xC09: "cortex-a9",
    0xC0E: "cortex-a17",
    0xC0F: "cortex-a15",
    0xD03: "cortex-a53",
    0xD04: "cortex-a35",
    0xD05: "cortex-a55",
    0xD07: "cortex-a57",
    0xD08: "cortex-a72",
    0xD09: "cortex-a73",
    0xD0A: "cortex-a75",
    0xD0B: "cortex-a76",
    0xD0C: "neoverse-n1",
    0xD0D: "cortex-a77",
    0xD40: "neoverse-v1",
    0xD41: "cortex-a78",
    0xD44: "cortex-x1",
    0xD46: "cortex-a510",
    0xD47: "cortex-a710",
    0xD49: "neoverse-n2",
    0xD4F: "neoverse-v2",
}
"""Parts of MIDR, of Arm's own cores."""
ALL = "all"
"""Cores of every kind together."""
LEAST_EVICTED, MOST_EVICTED = 8 << 20, 1 << 28
SUFFIXES = {"K": 10, "M": 20, "G": 30}


@takes("network", "target", "bench")
def bench_model(
    path: str | Path,
    *,
    watch: Count = nobody,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Bench:
    """Measure a .n8 file on a target, layer by layer, without Python there.

    On each kind of cores, by 1, 2, 4 ... threads that are pinned to them; by one thread
    with cold caches, too.  The outputs of a first run must have the bytes of this PC.
    watch: told how many of these are done, and of how many.  Ctrl-C keeps what has been
    measured, if that is something.  Neon8Error: the file is refused, or the target is
    in the way.
    """
    where, asked = settings.target, settings.bench
    content = read_model(path)
    given = settings.network.shapes or {}
    shapes = {name: fixed(path, name, dims) for name, dims in given.items()}
    with (
        Model.from_bytes(content, source=str(path)) as opened,
        opened.at(shapes) if shapes else opened as model,
        Board(link_to(where.target, where.core)) as board,
    ):
        there = BoardModel(opened, board, content, where.isa, max_bytes=where.max_bytes)
        sample = sample_of(model)
        there.run(sample)
        given_batch = batch.batch([batch.record(sample.values())])
        emulated = where.target in EMULATIONS
        kinds = kinds_of(board.facts)
        if emulated:
            kinds = (replace(kinds[0], name=f"{where.core}, emulated", mhz=0.0),)
        found = Bench(
            model=Path(path).name,
            digest=digest(content),
            neon8=__version__,
            target=where.target,
            board=str(board.facts.get("board") or board.facts["machine"]),
            emulated=emulated,
            complete=False,
            kinds=kinds,
            parts=(
                Part(name="inputs", operation="copy", macs=0),
                *(
                    Part(name=step.name, operation=step.operation, macs=step.macs)
                    for step in model.steps
                ),
                Part(name="outputs", operation="copy", macs=0),
            ),
        )
        ways = list(ways_of(kinds, asked.threads))
        options = ["--seconds", asked.seconds, "--runs", asked.most_runs]
        try:
            for done, way in enumerate(ways):
                watch(done, len(ways))
                kind, threads, cold = way
                more: list[object] = ["--threads", threads, *options, "--counters", 1]
                if not emulated:
                    more += ["--cpus", ",".join(map(str, kind.cpus))]
                more += ["--evict", evicted(board.facts)] if cold else []
                told = board.ask(["bench", *there.words, *more], given_batch)
                found = replace(found, rows=(*found.rows, row_of(told, *way)))
            watch(len(ways), len(ways))
            return replace(found, complete=True)
        except KeyboardInterrupt:
            if not found.rows:
                raise
            return found


def sample_of(model: Model) -> dict[str, Array]:
    """Values for each input, the same every time."""
    made = np.random.default_rng(0)

    def values(dtype: str, shape: tuple[int, ...], lo: int, hi: int) -> Array:
        if dtype == "float32":
            return made.standard_normal(shape).astype(np.float32)
        if dtype == "int32":  # indices and lengths, which may be any
            return np.zeros(shape, np.int32)
        ends = (0, 255) if dtype == "uint8" else (lo, hi)
        return made.integers(*ends, shape, endpoint=True).astype(dtype)

    return {
        name: values(info.dtype, info.shape, info.lo, info.hi)
        for name, info in model.inputs.items()
    }


def kinds_of(facts: Mapping[str, Any]) -> tuple[Kind, ...]:
    """The kinds of cores that run, the fastest last."""
    told: dict[int, dict[str, str]] = {}
    cpu = -1
    for key, value in facts.get("cpuinfo", ()):
        cpu = int(value) if key == "processor" and value.isdigit() else cpu
        told.setdefault(cpu, {})[key] = value
    kinds: dict[tuple[str, float], list[int]] = {}
    running = set(online(facts))
    for core in facts["cores"]:
        if core["cpu"] in running:
            name = name_of(core, told.get(core["cpu"], {}), str(facts["machine"]))
            mhz = int(core.get("max_khz", "0")) / 1000
            kinds.setdefault((name, mhz), []).append(core["cpu"])
    names = [name for name, _ in kinds]
    found = [
        Kind(
            name=name if names.count(name) == 1 else f"{name} at {mhz:g} MHz",
            cpus=tuple(cpus),
            mhz=mhz,
        )
        for (name, mhz), cpus in kinds.items()
    ]
    return tuple(sorted(found, key=lambda kind: kind.mhz))


def name_of(core: Mapping[str, str], told: Mapping[str, str], machine: str) -> str:
    """A core's, as the kernel tells it."""
    try:
        midr = int(core["midr"], 16)
        maker, part = midr >> 24, midr >> 4 & 0xFFF
    except (KeyError, ValueError):
        try:
            maker = int(told["CPU implementer"], 16)
            part = int(told["CPU part"], 16)
        except (KeyError, ValueError):
            return told.get("model name") or machine
    if maker == ARM and part in CORES:
        return CORES[part]
    return f"core {maker:#x}:{part:#x}"


def ways_of(
    kinds: tuple[Kind, ...], asked: tuple[int, ...] | None
) -> Iterator[tuple[Kind, int, bool]]:
    """Cores, threads, and whether caches are cold."""
    together = tuple(cpu for kind in kinds for cpu in kind.cpus)
    every = Kind(name=ALL, cpus=together)
    for kind in (*kinds, *([every] if len(kinds) > 1 else [])):
        most = min(64, len(kind.cpus))
        counts = [1 << bit for bit in range(7) if 1 << bit < most] + [most]
        if kind is every:
            counts = [most]
        for threads in dict.fromkeys(asked or counts):
            yield kind, threads, False
        if kind is not every:
            yield kind, 1, True


def evicted(facts: Mapping[str, Any]) -> int:
    """How many bytes fill every cache twice."""
    largest = LEAST_EVICTED // 2
    for core in facts["cores"]:
        for cache in core.get("caches", ()):
            size = str(cache.get("size", ""))
            digits, suffix = size[:-1], size[-1:]
            if digits.isdigit() and suffix in SUFFIXES:
                largest = max(largest, int(digits) << SUFFIXES[suffix])
    return min(2 * largest, MOST_EVICTED)


def row_of(told: Mapping[str, Any], kind: Kind, threads: int, cold: bool) -> Row:  # noqa: FBT001
    """What the runner told of runs in one way."""
    counts = told.get("counters", "")
    return Row(
        kind=kind.name,
        cpus=kind.cpus,
        threads=threads,
        cold=cold,
        runs=told["runs"],
        total=times(told["total"]),
        parts=tuple(map(times, told["parts"])),
        kernels=tuple(told["kernels"]),
        before=state(told["before"]),
        after=state(told["after"]),
        counts=tuple(
            Counts(counter=name, parts=tuple(map(float, each)))
            for name, each in (counts.items() if isinstance(counts, dict) else ())
        ),
        uncounted="" if isinstance(counts, dict) else str(counts),
    )


def times(nanoseconds: list[int]) -> Times:
    """Minimum, median and 95th percentile in milliseconds."""
    least, median, p95 = (each / 1e6 for each in nanoseconds)
    return Times(least=least, median=median, p95=p95)


def state(told: Mapping[str, list[int]]) -> State:
    """Clock and temperature."""

    def largest(name: str) -> float | None:
        return max(told[name]) / 1000 if told[name] else None

    return State(mhz=largest("khz"), celsius=largest("millicelsius"))
