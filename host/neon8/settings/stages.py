# SPDX-License-Identifier: Apache-2.0
"""The settings of each stage: what a user can choose, with default and help text.

A field that is added here is an option of the commands that use its stage, a keyword of
their Python functions, and a key in the stage's table of a settings file. The stages
import nothing heavy, so that --help is instant; what a path leads to is read by those
who use it.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neon8.errors import SettingsError
from neon8.machines import DEFAULT_CPU, EMULATIONS, NATIVE, TARGETS, check_target
from neon8.prebuilt import TARGETS as PREBUILT
from neon8.quant.scale_table import BITS, PRECISIONS, TABLE_SCHEMES, WEIGHTS16
from neon8.settings import methods
from neon8.settings.fields import (
    Kind,
    Stage,
    flag,
    number,
    one_of,
    output,
    path,
    setting,
    several,
    table,
    text,
    whole,
)
from neon8.settings.shapes import Open, shape, size

CLASSES = "a text file with the names of the classes, a line for each"
DECIBELS = replace(number("a number of dB", above=0, most=200), metavar="DB")
COUNT = whole(1)
METHOD = replace(text(methods.parse), metavar="METHOD")
TARGET = replace(text(check_target), choices=(*TARGETS, "ssh:", "adb"))
# Fields of these kinds are Any: their classes belong to packages that come later.
PREPROCESS = replace(path(also="neon8.data.preprocess.Preprocess"), metavar="P.toml")
OVERRIDES = replace(
    path(also="neon8.calibrate.overrides.Overrides"), metavar="ranges.json"
)


def _size(value: Any) -> int | Open:
    if isinstance(value, Open):
        return value
    return size(value) if isinstance(value, str) else COUNT.check(value)


ALL_PRECISIONS = (*PRECISIONS, WEIGHTS16)


def _precision(word: str) -> tuple[str, str]:
    precision, _, name = word.partition(":")
    if precision not in ALL_PRECISIONS or not name:
        forms = ", ".join(f"{each}:NAME" for each in ALL_PRECISIONS)
        raise SettingsError(f"{word!r} is not of the form {forms}")
    return name, precision


def _shard(word: str) -> tuple[int, int]:
    index, slash, count = word.partition("/")
    if not slash:
        raise SettingsError(f"{word!r} is not of the form i/n, like 2/8")
    return _piece((COUNT.parse(index), COUNT.parse(count)))


def _piece(value: Any) -> tuple[int, int]:
    try:
        index, pieces = map(COUNT.check, value)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{value!r} is not a piece and their number") from error
    if index > pieces:
        raise SettingsError(f"there is no piece {index} of {pieces}; they count from 1")
    return index, pieces


def _engine(word: str) -> None:
    host, _, port = word.removeprefix("dask://").rpartition(":")
    if not word.startswith("dask://") or not host or not port.isdigit():
        raise SettingsError(f"{word!r} is not of the form dask://HOST:PORT")


def _name(word: str) -> None:
    if not word:
        raise SettingsError("'' is no name")


def _release(word: str) -> None:
    if not re.fullmatch(r"[0-9]{1,9}([.][0-9]{1,9}){0,3}", word):
        raise SettingsError(f"{word!r} is no version of numbers and dots, like 1.0")


NAME = replace(text(_name), metavar="NAME")
RELEASE = text(_release)
SHAPES = table(shape, several(Kind(parse=size, check=_size)).check)
PRECISION = table(_precision, one_of(ALL_PRECISIONS).check)


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings(Stage):
    """The dimensions that an ONNX file leaves open."""

    shapes: Mapping[str, tuple[int | Open, ...]] | None = setting(
        None,
        "dimensions of an input of the ONNX file that leaves some open, or of a tensor "
        "that an operator of another domain makes, or a branch; may be given for "
        "several (default: a free first one is 1); bounds as in 1,3,32..1280:32,? are "
        "for samples of different sizes, and compile leaves such dimensions open in "
        "the .n8 file",
        SHAPES,
        option="--shape",
        metavar="NAME=1,3,224,224",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings(Stage):
    """The core for which a model is profiled."""

    core: str | None = setting(
        None, "a core, such as cortex-a55; with --ghz any board that has it", NAME
    )
    board: str | None = setting(
        None, "a board that others have measured, such as rpi4", NAME
    )
    ghz: float | None = setting(
        None,
        "the clock of the core, in GHz (default: the board's)",
        number("a clock in GHz", above=0, most=10),
        metavar="X",
    )
    measured: Path | None = setting(
        None,
        "what `neon8 bench` measured of this model, to scale the estimate by; says the "
        "core and the clock where the file does",
        path(),
        metavar="net.bench.json",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings(Stage):
    """How long is measured."""

    threads: tuple[int, ...] | None = setting(
        None,
        "instead of 1, 2, 4 ... and as many as there are cores of a kind",
        several(COUNT),
    )
    seconds: float = setting(
        1.0,
        "for each number of threads on each kind of cores",
        number("a time in seconds", above=0, most=3600),
        metavar="S",
    )
    most_runs: int = setting(1000, "in that time at most", COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings(Stage):
    """Which samples are used, and how images become inputs."""

    preprocess: Any = setting(None, "how images become inputs; a TOML file", PREPROCESS)
    limit: int | None = setting(
        None, "use at most N samples (default: all; diagnose: 20)", COUNT
    )
    skip: int = setting(0, "leave out the first N samples", whole(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveSettings(Stage):
    """How the float network is run on the samples."""

    workers: int = setting(
        1,
        "worker processes, each with one thread and the memory of one session; never "
        "more than there are samples; more than there are processors gains nothing",
        COUNT,
    )
    engine: str | None = setting(
        None,
        "work on a dask.distributed cluster, given its scheduler",
        text(_engine),
        metavar="dask://HOST:PORT",
    )
    ignore_nonfinite: bool = setting(
        False,
        "count NaN and infinite values that the network computes and go on, instead of "
        "stopping; in samples they are always errors",
        flag(),
    )
    shard: tuple[int, int] | None = setting(
        None,
        "only the i-th of n equal pieces, i = 1 ... n",
        Kind(parse=_shard, check=_piece),
        metavar="i/n",
    )
    report: Path | None = setting(
        None,
        "write how the thresholds settle, and what set each extreme",
        output(),
        metavar="convergence.json",
    )
    until_stable: float | None = setting(
        None,
        "stop when no threshold has moved by more than PERCENT of its range while the "
        "samples doubled; 1 is a good value",
        number("a percentage", above=0, most=1, percent=True),
        metavar="PERCENT",
        unit="as a fraction, like 0.01",
    )

    def agree(self) -> None:
        """Check that workers and a cluster are not both asked for."""
        if self.engine is not None and self.workers > 1:
            text = "--workers is for this machine, --engine for a cluster"
            raise SettingsError(f"{text}; leave one of them out")


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveSettings(Stage):
    """How the scales are chosen."""

    method: str = setting("mse", "how thresholds are chosen", METHOD)
    scheme: str = setting("auto", "where zero points may lie", one_of(TABLE_SCHEMES))
    bits: int = setting(
        8,
        "bits of all activations, 7 to 16; more than 8 are held in int16",
        one_of(BITS),
        metavar="N",
    )
    precision: Mapping[str, str] = setting(
        {},
        "a tensor, or the output of a layer, with up to 16 bits, or float:NAME in "
        "float32, or weights16:NAME, a layer with weights of 16 bits; may be given "
        "several times",
        PRECISION,
        metavar="int16:NAME",
    )
    overrides: Any = setting(
        None,
        "your own ranges, which win over what the samples say; a JSON file",
        OVERRIDES,
        option="--override",
    )
    plain: bool = setting(
        False,
        "no steps, no equalization and no bias correction",
        flag(),
    )
    fast: bool = setting(
        False, "scales with which 3x3 convolutions may run by int8 Winograd", flag()
    )
    max_sqnr_loss: float = setting(
        6.0,
        "what that may cost a layer, in dB of the signal to noise ratio of its output",
        DECIBELS,
        needs=("fast",),
    )

    def agree(self) -> None:
        """Check that fast goes with 7 or 8 bits: Winograd has no int16."""
        if self.fast and self.bits > 8:
            raise SettingsError(
                f"fast needs activations of 7 or 8 bits, not {self.bits}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineSettings(Stage):
    """What betters a table by running the int8 network."""

    thorough: bool = setting(
        False,
        "integer weights and biases chosen on samples, where others say that it helps",
        flag(),
    )
    target_sqnr: float | None = setting(
        None, "more bits until the output has so many dB", DECIBELS
    )
    max_cost: float | None = setting(
        None,
        "more bits at up to X times the cost of the int8 network, as 1.1",
        number("a cost", least=1),
        metavar="X",
    )
    max_ms: float | None = setting(
        None,
        "faster layers until a run takes so many estimated milliseconds, and more bits "
        "within them, see neon8 profile; takes --board, or --core and --ghz",
        number("a time in ms", above=0),
        metavar="MS",
    )
    curve: Path | None = setting(
        None,
        "write the steps of that search as JSON",
        output(),
        metavar="F.json",
        needs=("target_sqnr", "max_cost", "max_ms"),
    )

    @property
    def searches(self) -> bool:
        """True if more bits are asked for."""
        asked = (self.target_sqnr, self.max_cost, self.max_ms)
        return any(each is not None for each in asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileSettings(Stage):
    """What the .n8 file is like."""

    io: str = setting(
        "float", "type of the inputs and outputs", one_of(("float", "int8"))
    )
    layout: str = setting(
        "nchw",
        "of the inputs and outputs of four dimensions",
        one_of(("nchw", "nhwc")),
        option="--io-layout",
    )
    image: Any = setting(
        None,
        "the input is a uint8 image, N H W C, that is preprocessed so; size and color "
        "are up to who gives it",
        PREPROCESS,
        option="--io-image",
    )
    keep_float: Collection[str] = setting(
        (),
        "a layer, or an ONNX operator such as Conv, that runs in float32; repeatable",
        several(text(), repeated=True),
        metavar="NAME",
    )
    accumulator_aware: bool = setting(
        False,
        "enlarge weight scales so that int16 holds four products",
        flag(),
    )
    max_sqnr_loss: float = setting(
        0.1,
        "what that may cost a layer, in dB of the signal to noise ratio of its weights",
        DECIBELS,
        needs=("accumulator_aware",),
    )
    cut: bool = setting(
        False,
        "compile the largest part that neon8 can run, and write what stands before and "
        "after it as ONNX files beside the .n8 file",
        flag(),
    )

    def agree(self) -> None:
        """Check that a part takes and gives what the ONNX files beside it do."""
        given = {
            "io": self.io != "float",
            "layout": self.layout != "nchw",
            "image": self.image is not None,
        }
        for name in given if self.cut else ():
            if given[name]:
                text = f"cut and {name} contradict each other: a part takes and gives"
                raise SettingsError(f"{text} what the ONNX network has there")


CORES = "; ".join(
    f"{name}: {', '.join(each.cpus)}" for name, each in EMULATIONS.items()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSettings(Stage):
    """Where the int8 network runs."""

    target: str = setting(
        NATIVE,
        f"this machine; ARM under qemu, {' or '.join(EMULATIONS)}; or a board, "
        "ssh:[user@]host[:port] or adb[:serial]",
        TARGET,
        metavar="WHERE",
    )
    cpu: str | None = setting(
        None,
        f"the core that qemu emulates, of {CORES} (default: {DEFAULT_CPU})",
        one_of(tuple(dict.fromkeys(c for e in EMULATIONS.values() for c in e.cpus))),
        metavar="CORE",
    )
    isa: str | None = setting(
        None,
        "use no kernels above this level: c, vector, avx2, avx512; neon, dotprod, "
        "i8mm, sme (default: the processor's best)",
        text(),
        metavar="LEVEL",
    )
    max_bytes: int | None = setting(
        None,
        "memory that a model and a session may take with the kernels that run here; to "
        "fit, layers give up weights that Winograd makes eight times as large, and run "
        "slower with the same results (default: 1 GiB)",
        COUNT,
    )

    def agree(self) -> None:
        """Check that the core is one of the emulated target."""
        if self.cpu is None:
            return
        fitting = [name for name, e in EMULATIONS.items() if self.cpu in e.cpus]
        if self.target not in EMULATIONS:
            remedy = f"add --target {' or '.join(fitting)}"
            raise SettingsError(
                f"--cpu {self.cpu} is a core that qemu emulates: {remedy}"
            )
        if self.target not in fitting:
            cores = ", ".join(EMULATIONS[self.target].cpus)
            raise SettingsError(
                f"--cpu {self.cpu} is a core of {' and '.join(fitting)}, not of "
                f"{self.target}, whose cores are {cores}"
            )

    @property
    def core(self) -> str:
        """The core that is emulated."""
        return self.cpu or DEFAULT_CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(Stage):
    """How many samples run at the same time."""

    workers: int | None = setting(
        None,
        "threads that run samples side by side, each in a session of its own, or an "
        "emulated process; fewer where --max-bytes has no room for so many; the result "
        "is the same (default: one for each processor)",
        COUNT,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateSettings(Stage):
    """What is measured."""

    reference: Path | None = setting(
        None, "FP32 network to compare with", path(), metavar="MODEL.onnx"
    )
    label_offset: int = setting(0, "is added to every label", whole())


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings(Stage):
    """What a network is for, which decides beside SQNR."""

    metric: Any = setting(
        "",
        "top1, boxes, keypoints, masks, embedding or text, =OUTPUT after it for one "
        "output; sqnr for nothing but that; or your own module:function (default: what "
        "the outputs show)",
        text(also="builtins.function"),
        metavar="KIND|MODULE:FUNCTION",
    )
    detection: Any = setting(
        "",
        "how the outputs of a detector are read, where the first sample does not show "
        "it",
        text(also="neon8.evaluate.heads.Option"),
        metavar="KEY=VALUE,...",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSettings(Stage):
    """Which settings are tried."""

    methods: tuple[str, ...] = setting(
        methods.COMPARED, "instead of all", several(METHOD)
    )
    schemes: tuple[str, ...] = setting(
        ("auto", "symmetric", "symmetric_with_uint8"),
        "where zero points may lie",
        several(one_of(TABLE_SCHEMES)),
        metavar="SCHEME",
    )
    overrides: Any = setting(
        None,
        "your own ranges, as for calibrate; a JSON file",
        OVERRIDES,
        option="--override",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseSettings(Stage):
    """How much is tried."""

    top: int = setting(
        5,
        "try remedies for the K worst tensors and layers; 0: none",
        whole(0),
        metavar="K",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSettings(Stage):
    """What a report has beside the network, its table and its .n8 file."""

    calibration: Path | None = setting(
        None,
        "the calibration file, for histograms and what each method would choose",
        path(),
        option="--calib",
        metavar="M.calib",
    )
    others: tuple[Path, ...] = setting(
        (),
        "tables, or .n8 files, to compare with on the same samples",
        several(path()),
        option="--compare",
        metavar="OTHER.scales.json",
    )
    boards: tuple[str, ...] = setting(
        (),
        "estimate the time of a run on these, as `neon8 profile --board` does",
        several(NAME),
    )
    search: Path | None = setting(
        None,
        "the steps of a search for more bits, which `calibrate --curve` wrote",
        path(),
        metavar="F.json",
    )
    labels: Path | None = setting(None, CLASSES, path(), metavar="L.txt")
    shown: int = setting(
        12, "how many samples are shown, those that lose most", whole(0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertSettings(Stage):
    """What a table of another tool does not say."""

    source_format: str | None = setting(
        None,
        "format of the file (default: told by the content)",
        text(),
        option="--from",
        metavar="F",
    )
    names: Path | Mapping[str, str] | None = setting(
        None,
        "a JSON file of old names -> new ones",
        path(also=dict),
        metavar="MAP.json",
    )
    model: Path | None = setting(
        None,
        "the float network, for what the file does not say",
        path(),
        metavar="MODEL.onnx",
    )
    onto: Path | None = setting(
        None,
        "our table, for scales that the file does not have",
        path(),
        metavar="M.scales.json",
    )
    ncnn_param: Path | None = setting(
        None,
        "name ncnn's entries after the layers of this file",
        path(),
        metavar="NET.param",
    )
    trt_version: str | None = setting(
        None, "for the header: 8.6.1, or 8601", text(), metavar="V"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageSettings(Stage):
    """What a package has."""

    targets: tuple[str, ...] = setting(
        (),
        "a machine that it is for; may be given for several (default: all that there "
        "are for Linux, or for Android)",
        several(one_of(PREBUILT), repeated=True),
        option="--target",
        metavar="linux-aarch64",
    )
    embed: bool = setting(
        False,
        "the model is in the code, and no file beside it, as in static programs always",
        flag(),
    )
    name: str | None = setting(
        None,
        "what the package is called, made into a name that C, Python and Java take "
        "(default: the name of the file)",
        NAME,
    )
    release: str = setting(
        "1.0", "the version of a package that has one", RELEASE, metavar="N.N"
    )
    labels: Path | None = setting(None, CLASSES, path(), metavar="L.txt")
    preprocess: Any = setting(
        None,
        "how images become inputs, for the constants in the code; a TOML file",
        PREPROCESS,
    )
    sample: Path | None = setting(
        None,
        "what the example runs on, as `neon8 run --input` takes it (default: made up)",
        path(),
        option="--input",
        metavar="X.npy",
    )
    check: bool = setting(
        True, "build the example, run it, and compare its bytes with this PC's", flag()
    )
    force: bool = setting(
        False, "replace a folder that has other files than those of a package", flag()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings(Stage):
    """How a network is trained with simulated rounding, its last third frozen."""

    epochs: int = setting(6, "passes over the samples", COUNT)
    rate: float = setting(
        1e-3,
        "learning rate of Adam at the start; it falls to 0 along a cosine",
        number("a learning rate", above=0, most=10),
        metavar="R",
    )
    batch: int = setting(32, "samples in a step", COUNT)
    seed: int = setting(0, "of the order of the samples", whole(0))
    scheme: str = setting(
        "auto", "where zero points may lie, as for calibrate", one_of(TABLE_SCHEMES)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of all stages.  A settings file has a table for each."""

    network: NetworkSettings = NetworkSettings()
    data: DataSettings = DataSettings()
    observe: ObserveSettings = ObserveSettings()
    solve: SolveSettings = SolveSettings()
    refine: RefineSettings = RefineSettings()
    compile: CompileSettings = CompileSettings()
    target: TargetSettings = TargetSettings()
    profile: ProfileSettings = ProfileSettings()
    bench: BenchSettings = BenchSettings()
    run: RunSettings = RunSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    judge: JudgeSettings = JudgeSettings()
    compare: CompareSettings = CompareSettings()
    diagnose: DiagnoseSettings = DiagnoseSettings()
    report: ReportSettings = ReportSettings()
    convert: ConvertSettings = ConvertSettings()
    train: TrainSettings = TrainSettings()
    package: PackageSettings = PackageSettings()

    def __repr__(self) -> str:
        """What differs from the defaults."""
        own = [
            f"{name}={getattr(self, name)!r}"
            for name in STAGES
            if getattr(self, name) != getattr(DEFAULTS, name)
        ]
        return f"Settings({', '.join(own)})"


DEFAULTS = Settings()
STAGES: Mapping[str, type[Stage]] = {
    name: type(getattr(DEFAULTS, name)) for name in Settings.__dataclass_fields__
}
"""Name of a table of a settings file -> its settings."""
