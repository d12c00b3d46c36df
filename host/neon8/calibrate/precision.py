# SPDX-License-Identifier: Apache-2.0
"""What the user wants as int16, tensors or weights, or not quantized at all."""

from collections.abc import Collection, Mapping

from neon8.calibrate.observation import Observation
from neon8.errors import CalibrationError
from neon8.ir.graph import Graph
from neon8.quant.scale_table import NARROW, PRECISIONS, WEIGHTS16, ScaleTable
from neon8.rewrite.bits import in_float32, with_bits, with_wide_weights
from neon8.text import suggested

INT16, FLOAT = PRECISIONS
WIDEST = 16
"""Bits of int16 tensors, unless accumulators allow only fewer."""

Precision = Mapping[str, str]
"""Name of a tensor, or of a layer for its output -> one of PRECISIONS; of a layer, for
its weights, -> WEIGHTS16."""


def resolve(
    wanted: Precision, observation: Observation, graph: Graph | None
) -> dict[str, str]:
    """Scale group -> one of PRECISIONS, for what the user names.

    graph: the network; without it only convolutions and fully connected layers are
    known by name.  CalibrationError: an unknown name, or two that contradict.
    """
    groups = observation.scale_groups
    makers = {name: facts.output for name, facts in observation.layers.items()}
    if graph is not None:
        makers |= {node.name: node.output for node in graph.nodes}
    found: dict[str, str] = {}
    said: dict[str, str] = {}
    for name, precision in wanted.items():
        where = f"precision {precision}:{name}"
        if precision == WEIGHTS16:
            continue
        if precision not in PRECISIONS:
            text = f"{precision!r} is not one of {', '.join(PRECISIONS)}"
            raise CalibrationError(f"{where}: {text}")
        tensor = name if name in groups else makers.get(name)
        if tensor is None:
            raise CalibrationError(f"{where}: {_nothing(name, [*groups, *makers])}")
        if tensor not in groups:
            text = f"its output {tensor!r} has no scale, as its values are not observed"
            raise CalibrationError(f"{where}: {text}")
        group = groups[tensor]
        if found.setdefault(group, precision) != precision:
            text = f"contradicts {found[group]}:{said[group]}, which shares its scale"
            raise CalibrationError(f"{where}: {text}")
        said.setdefault(group, name)
    return found


def wide_layers(
    wanted: Precision, observation: Observation, graph: Graph | None
) -> frozenset[str]:
    """The layers whose weights the user wants as int16.

    CalibrationError: an unknown name, or there is no network to take weights from.
    """
    found = frozenset(name for name, each in wanted.items() if each == WEIGHTS16)
    for name in sorted(found):
        where = f"precision {WEIGHTS16}:{name}"
        if name not in observation.layers:
            text = "the network has no such layer with weights"
            raise CalibrationError(
                f"{where}: {text}{suggested(name, observation.layers)}"
            )
        if graph is None:
            text = "weights cannot be told without the network; give it, too"
            raise CalibrationError(f"{where}: {text}")
    return found


def _nothing(name: str, known: list[str]) -> str:
    return (
        "the network has no such tensor or layer (an activation belongs to the layer "
        f"before it){suggested(name, known)}"
    )


def bits_of(chosen: Mapping[str, str], group: str, usual: int) -> int:
    """The bits with which to solve a group.  chosen: from resolve()."""
    return WIDEST if chosen.get(group) == INT16 else usual


def finished(
    table: ScaleTable,
    graph: Graph | None,
    groups: Mapping[str, str],
    chosen: Mapping[str, str],
    wide: Collection[str] = (),
    streams: Collection[str] = (),
    floats: Collection[str] = (),
) -> ScaleTable:
    """Give int16 tensors as many bits as accumulators allow, and free float ones.

    table: solved.  graph: the network; without it tensors keep their bits, and the
    compiler says where they are too many.  groups: tensor -> scale group.  chosen: from
    resolve().  wide: from wide_layers().  streams: groups that get 16 bits, too.
    floats: groups that are float32, too.
    """
    bits = {
        groups[name]: entry.bits
        for name, entry in table.tensors.items()
        if entry.bits > NARROW
    }
    if graph is not None:
        bits |= dict.fromkeys(streams, WIDEST)
        table = with_bits(table, graph, groups, bits)
        table = with_wide_weights(table, graph, wide)
    kept = [group for group, precision in chosen.items() if precision == FLOAT]
    return in_float32(table, groups, [*kept, *floats])
