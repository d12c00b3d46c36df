# SPDX-License-Identifier: Apache-2.0
"""Choose a scale table from an observation, without inference."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path

import numpy as np

from neon8.calibrate.fast import fast as with_winograd
from neon8.calibrate.fast import narrower
from neon8.calibrate.observation import Observation, check_model
from neon8.calibrate.overrides import Entry, Overrides, resolve
from neon8.calibrate.overrides import load as load_overrides
from neon8.calibrate.precision import INT16, bits_of, finished, wide_layers
from neon8.calibrate.precision import resolve as named
from neon8.calibrate.recipe.bias import corrections
from neon8.calibrate.recipe.branches import branches, with_own
from neon8.calibrate.recipe.recipe import Recipe, prepare
from neon8.calibrate.recipe.reserve import AVERAGED, averaged, bounds, with_reserve
from neon8.calibrate.recipe.results import results
from neon8.calibrate.recipe.streams import streams
from neon8.calibrate.run.threads import usable
from neon8.calibrate.statistics.histogram import Histogram, merge
from neon8.calibrate.statistics.patches import Patches
from neon8.calibrate.thresholds import choose as thresholds
from neon8.calibrate.thresholds import guards
from neon8.calibrate.thresholds.choose import scheme_of, tensor_scale
from neon8.errors import CalibrationError, TableError
from neon8.ir.graph import Graph
from neon8.ir.groups import held, scale_groups, symmetric
from neon8.quant import reasons
from neon8.quant.grid import Grid, at_bits
from neon8.quant.scale_table import BITS, SCHEMES, LayerScale, ScaleTable, TensorScale
from neon8.quant.weights import weight_scales
from neon8.rewrite.masks import masked_scores
from neon8.settings.methods import parse
from neon8.settings.stages import SolveSettings

NOTHING: Mapping[str, Grid] = {}
USUAL = SolveSettings()

LEAST_REACH = 1e-6
"""The share of the largest value seen that a user's range must cover at least."""


def solve(
    observation: Observation,
    graph: Graph | None = None,
    settings: SolveSettings = USUAL,
) -> ScaleTable:
    """Choose all scales; each guard that fires warns by the logger "neon8.guards".

    graph: the network that was observed; without it, whatever needs weights is left
    out.  CalibrationError; TableError: an override fits no tensor, or contradicts.
    """
    table = solve_quietly(observation, graph, settings)
    reasons.log(table)
    return table


def solve_quietly(
    observation: Observation,
    graph: Graph | None = None,
    settings: SolveSettings = USUAL,
) -> ScaleTable:
    """Choose all scales as solve() does, without the warnings."""
    if graph is not None:
        check_model(observation, graph.digest, graph.name)
    if graph is None and settings.fast:
        text = "what int8 Winograd costs cannot be told without the network"
        raise CalibrationError(f"fast: {text}; give it, too")
    settings = with_overrides(settings)
    own, chosen = _wishes(observation, settings, graph)
    wide = wide_layers(settings.precision, observation, graph)
    tensors = partial(_tensors, observation, settings, own, chosen, graph)
    known, recipe = tensors(), None
    wider: frozenset[str] = frozenset()
    floats: set[str] = set()
    scheme = settings.scheme
    if graph is not None and not settings.plain:
        closed = [n for n, group in observation.scale_groups.items() if group in own]
        recipe = prepare(observation, graph, known, closed, scheme=scheme)
        seen = {name: each.histogram for name, each in observation.tensors.items()}
        alone = partial(_solve, entry=None, settings=settings, layers=[])
        joined = results(graph, seen, alone, recipe.groups)
        apart = branches(graph, seen, alone, recipe.groups, joined)
        if apart or joined:
            groups = scale_groups(graph, {*apart, *joined})
            observation = replace(observation, scale_groups=groups)
            recipe = recipe.with_groups(groups)
            own, chosen = _wishes(observation, settings, graph)
            tensors = partial(_tensors, observation, settings, own, chosen, graph)
            known = with_own(tensors(), apart)
        closed = [*own, *chosen]
        floats = {observation.scale_groups[name] for _, name in joined} - {*closed}
        wider = streams(graph, observation.scale_groups, seen, known, closed)
    groups = observation.scale_groups
    table = partial(_table, observation, settings, recipe)
    found = table(known)
    if settings.fast and graph is not None:
        network = graph if recipe is None else recipe.graph
        rows = observation if recipe is None else recipe.observation
        narrow = table(tensors(narrower(network, groups, scheme=scheme)))
        limit = settings.max_sqnr_loss
        found = with_winograd(rows, network, found, narrow, limit=limit)
    if recipe is not None:
        found = corrections(recipe.graph, found, recipe.means)
    return finished(found, graph, groups, chosen, wide, wider, floats)


def _wishes(
    observation: Observation, settings: SolveSettings, graph: Graph | None
) -> tuple[dict[str, Entry], dict[str, str]]:
    """Scale group -> the range, and the precision, that the user wants.

    Of scores that are masked in int16 anyway int16 is wanted, too.
    """
    groups, overrides = observation.scale_groups, settings.overrides
    own = resolve(overrides, groups) if isinstance(overrides, Overrides) else {}
    chosen = named(settings.precision, observation, graph)
    if graph is not None and not settings.plain:
        scores = {groups[name] for _, name, _ in masked_scores(graph)}
        chosen = dict.fromkeys(scores - own.keys(), INT16) | chosen
    return own, chosen


def with_overrides(settings: SolveSettings) -> SolveSettings:
    """Replace the path of overrides by what its file holds.  TableError."""
    if isinstance(settings.overrides, Path):
        return replace(settings, overrides=load_overrides(settings.overrides))
    return settings


def _tensors(
    observation: Observation,
    settings: SolveSettings,
    own: Mapping[str, Entry],
    chosen: Mapping[str, str],
    graph: Graph | None,
    narrow: Mapping[str, Grid] = NOTHING,
) -> dict[str, TensorScale]:
    """Solve each scale group of the network once, without factors and offsets.

    own, chosen: ranges and precisions set by the user, by group.  narrow: grids of
    groups for which the user has set nothing.
    """
    if not observation.samples:
        raise CalibrationError(
            f"{observation.model_name}: there are no samples to calibrate with"
        )
    groups = observation.scale_groups
    known = observation.tensors.keys()
    fed: dict[str, set[str]] = {}
    for name in known:
        fed.setdefault(groups[name], set()).add(name)
    for name, sources in {} if graph is None else held(graph).items():
        if name in groups:
            fed.setdefault(groups[name], set()).update(sources & known)
    histograms = {
        group: [observation.tensors[name].histogram for name in sorted(names)]
        for group, names in fed.items()
    }
    layers: dict[str, list[Patches]] = {group: [] for group in histograms}
    for facts in observation.layers.values():
        layers[groups[facts.input]].append(facts.patches)

    centred = frozenset() if graph is None else symmetric(graph)
    without_zero_point = {groups[name] for name in centred if name in groups}
    recipe = None if settings.plain else graph
    means = {} if recipe is None else averaged(recipe, groups)
    limits = {} if recipe is None else bounds(recipe, groups)
    samples = len(observation.samples)

    def scale_of(group: str) -> TensorScale:
        entry = own.get(group)
        free = entry is None and group not in chosen
        grid = narrow.get(group) if free else None
        if grid is None:
            bits = bits_of(chosen, group, settings.bits)
            rule = replace(settings, bits=bits, fast=False)
        else:
            rule = replace(settings, scheme=grid.scheme, bits=grid.bits)
        if group in without_zero_point:
            rule = replace(rule, scheme="symmetric")
        bits, more = rule.bits, means.get(group, 0) if entry is None else 0
        rule = replace(rule, bits=min(bits + more, max(BITS)))
        histogram = reduce(merge, histograms[group])
        try:
            found = _solve(histogram, entry, rule, layers[group])
        except CalibrationError as error:
            if entry is not None:
                raise TableError(f"{entry.where}: {error}") from error
            text = f"{observation.model_name}: tensor {group!r}: {error}"
            raise CalibrationError(text) from error
        if more:
            found = at_bits(found, bits)
            found = replace(found, reasons=(AVERAGED, *found.reasons))
        if entry is None and group in limits:
            found = with_reserve(found, limits[group], samples=samples)
        return found

    with ThreadPoolExecutor(usable()) as threads:  # their loops are in C
        solved = dict(zip(histograms, threads.map(scale_of, histograms), strict=True))
    return {name: solved[group] for name, group in groups.items()}


def _table(
    observation: Observation,
    settings: SolveSettings,
    recipe: Recipe | None,
    tensors: Mapping[str, TensorScale],
) -> ScaleTable:
    """The table: these tensors, with the recipe if there is one, and weight scales."""
    if recipe is not None:
        tensors = recipe.tensor_scales(tensors)
        layers = recipe.layer_scales(tensors)
    else:
        layers = _layers(observation, tensors)
    few = len(observation.samples) < guards.FEWEST_SAMPLES
    return ScaleTable(
        model_name=observation.model_name,
        model_digest=observation.model_digest,
        method=str(parse(settings.method)),
        scheme=settings.scheme,
        samples=len(observation.samples),
        engine=_one_line(observation.engine),
        tensors=dict(tensors),
        layers=layers,
        reasons=("few:samples",) if few else (),
        shapes=observation.usual_shapes or {},
    )


def _layers(
    observation: Observation, tensors: Mapping[str, TensorScale]
) -> dict[str, LayerScale]:
    """Weight scales of all layers, without the recipe."""
    return {
        name: weight_scales(
            name,
            source=facts.input,
            absmax=facts.weight_absmax,
            bias=facts.bias,
            input_scale=tensors[facts.input].scale,
            input_bits=tensors[facts.input].bits,
            groups=facts.groups,
        )
        for name, facts in observation.layers.items()
    }


def _one_line(engine: Mapping[str, str]) -> str:
    """'onnxruntime 1.20.0, CPU, ORT_ENABLE_ALL'."""
    known = dict.fromkeys(("engine", "version", "provider", "optimization"), "?")
    known |= engine
    text = "{engine} {version}, {provider}, {optimization}".format(**known)
    return text.replace("ExecutionProvider", "")


def _solve(
    histogram: Histogram,
    entry: Entry | None,
    settings: SolveSettings,
    layers: list[Patches],
) -> TensorScale:
    """Solve one group, with what the user has set for it."""
    method, bits, chosen = settings.method, settings.bits, settings.scheme
    if entry is None:
        return thresholds.solve(
            histogram, method=method, scheme=chosen, bits=bits, layers=layers
        )
    own = entry.override
    bits = own.bits or bits
    chosen = own.scheme or chosen
    if own.scale is not None:
        found = _exactly(histogram, entry, own.scale, bits=bits)
    elif own.limits is not None:
        grid = Grid(scheme_of(chosen, negative=own.limits[0] < 0), bits)
        found = tensor_scale(histogram, grid, own.limits, ())
    elif own.threshold is not None:
        found = _within(histogram, entry, own.threshold, scheme=chosen, bits=bits)
    else:
        _check_unsigned(histogram, entry)
        found = thresholds.solve(
            histogram,
            method=own.method or method,
            scheme=chosen,
            bits=bits,
            layers=layers,
        )
    if own.method is None:
        _check_reach(histogram, entry, found.threshold)
    differs = own.method if own.method != str(parse(method)) else None
    return replace(
        found,
        method=found.method or differs,
        reasons=("override", *found.reasons),
    )


def _check_reach(
    histogram: Histogram, entry: Entry, limits: tuple[float, float]
) -> None:
    """Raise TableError if the user's range covers next to nothing of what was seen."""
    lo, hi = limits
    seen = max(-histogram.minimum, histogram.maximum)
    if max(-lo, hi) < LEAST_REACH * seen:
        raise TableError(
            f"{entry.where}: the range {lo:.6g} .. {hi:.6g} is not a millionth of the "
            f"values seen, {histogram.minimum:.6g} .. {histogram.maximum:.6g}: enlarge "
            "it, or leave it out"
        )


def _check_unsigned(histogram: Histogram, entry: Entry) -> None:
    negative = histogram.minimum < 0
    if entry.override.scheme == "unsigned" and negative:
        raise TableError(
            f"{entry.where}: scheme is unsigned, but values down to "
            f"{histogram.minimum:.6g} were seen; to clip them set min and max"
        )


def _within(
    histogram: Histogram, entry: Entry, threshold: float, *, scheme: str, bits: int
) -> TensorScale:
    """The grid from -threshold, or 0 for a tensor never negative, to threshold."""
    _check_unsigned(histogram, entry)
    kind = scheme_of(scheme, negative=histogram.minimum < 0)
    if kind == "asymmetric" and entry.override.scheme is None:
        kind = "symmetric"
    limits = (0.0 if kind == "unsigned" else -threshold), threshold
    return tensor_scale(histogram, Grid(kind, bits), limits, ())


def _exactly(
    histogram: Histogram, entry: Entry, scale: float, *, bits: int
) -> TensorScale:
    """The user's own grid.  TableError: its zero point does not fit the scheme."""
    zero_point = entry.override.zero_point or 0
    lowest = Grid("unsigned", bits).lowest
    kind = {0: "symmetric", lowest: "unsigned"}.get(zero_point, "asymmetric")
    if entry.override.scheme in SCHEMES:
        kind = entry.override.scheme
    grid = Grid(kind, bits)
    allowed = {"symmetric": (0, 0), "unsigned": (lowest, lowest)}
    least, most = allowed.get(kind, (grid.lowest, grid.highest))
    if not least <= zero_point <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        text = f"zero_point {zero_point} does not fit {kind} int{bits}; {wanted} does"
        raise TableError(f"{entry.where}: {text}")
    ends = [float(scale) * (end - zero_point) for end in (grid.lowest, grid.highest)]
    if max(-ends[0], ends[1]) > float(np.finfo(np.float32).max):
        raise TableError(f"{entry.where}: scale: its range is too large for float32")
    low, high = (float(np.float32(end)) for end in ends)
    plain = tensor_scale(histogram, grid, (-1.0, 1.0), ())
    return replace(plain, scale=scale, zero_point=zero_point, threshold=(low, high))
