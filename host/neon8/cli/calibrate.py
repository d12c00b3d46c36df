# SPDX-License-Identifier: Apache-2.0
"""neon8 calibrate: observe and solve in one command."""

import argparse
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neon8.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neon8.calibrate.calibrate import Refinement
    from neon8.refine.precision import Found, Goal
    from neon8.refine.sensitivity import Watch

FAST, THOROUGH = "--fast", "--thorough"
TARGET, COST, CURVE = "--target-sqnr", "--max-cost", "--curve"

SUMMARY = "choose the scales of a network from samples"

HELP = f"""\
examples:
  neon8 calibrate net.onnx --data train.npz -o net.scales.json
  neon8 calibrate net.onnx --data photos/ --preprocess imagenet.toml --limit 200 \\
      --method kl -o net.scales.json
  neon8 calibrate net.onnx --data train.npz --precision int16:conv1 \\
      -o net.scales.json

--fast  3x3 convolutions of stride 1 may run by int8 Winograd on processors with dot
        products: their inputs get 127 steps, and their weights are rounded so that each
        row of three has an even sum, where no layer that reads the tensor loses as much
        as --max-sqnr-loss. The table says of each layer how its weights are rounded and
        what it cost

--thorough
        choose the level of each weight, of the two that are near, and each bias, by
        what the layer reads in the int8 network; on 50 samples, while up to 50 others,
        the last ones of fewer, judge: the table is the best of all by the SQNR of
        centred logits, that without it among them. Seconds for small networks, a minute
        or two for large ones

--target-sqnr, --max-cost
        measure on 20 samples what each tensor costs by being rounded to 8 bits, and
        give 16 bits to those that gain most, or float32 where that is of no use: the
        fewest with which the output has so many dB on 40 others, or the best within the
        cost, or both. The cost is that of all layers in MACs, as libneon8 reckons: 1 is
        the int8 network, a MAC of int16 counts as 2, of float32 as 8, a byte that is
        moved as 4. SQNR is that of centred logits, before a final Softmax; each step is
        printed as the int8 library gives it, * is the one that was taken. A target that
        is out of reach has exit status 3, and the best table is written

{options.RECIPE}
The table is JSON, made to be read and edited: change a scale and compile again.

{options.CHOOSING}
{options.PRECISION}{options.OVERRIDE}
{options.DATA}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.onnx", "the float network")
    options.data(parser)
    options.shapes(parser)
    options.observing(parser)
    options.solving(parser)
    options.plain(parser)
    parser.add_argument(
        FAST, action="store_true", help="scales for int8 Winograd, see above"
    )
    options.max_sqnr_loss(parser, FAST, of="output")
    parser.add_argument(
        THOROUGH, action="store_true", help="levels and biases by samples, see above"
    )
    parser.add_argument(
        TARGET, type=float, metavar="DB", help="more bits until it has so many dB"
    )
    parser.add_argument(
        COST, type=float, metavar="X", help="more bits at X times the cost, as 1.1"
    )
    parser.add_argument(
        CURVE,
        type=options.output_file,
        metavar="F.json",
        help=f"the steps of {TARGET} and {COST} as JSON",
    )
    options.output(parser, "M.scales.json")
    options.quiet(parser)


def run(arguments: argparse.Namespace) -> str:
    """Observe the samples, choose the scales and write the table."""
    from neon8.calibrate import overrides
    from neon8.calibrate.calibrate import calibrate
    from neon8.calibrate.run import convergence
    from neon8.inspection.guards import described, priced
    from neon8.refine import budget

    path = arguments.override
    limit = options.max_sqnr_loss_of(arguments, FAST)
    options.check_output(arguments.output, path)
    with (
        options.run_options(arguments) as settings,
        _chosen(arguments) as thorough,
        _search(arguments) as search,
    ):
        done = calibrate(
            arguments.model,
            arguments.data,
            method=arguments.method,
            scheme=arguments.scheme,
            bits=arguments.bits,
            overrides=None if path is None else overrides.load(path),
            fast=limit if arguments.fast else None,
            precision=options.precision_of(arguments),
            plain=arguments.plain,
            refinements=(*thorough.refinements, *search.refinements),
            options=settings,
        )
    text = f"{arguments.output}: {described(done.table)}"
    if arguments.fast:
        text += "\n" + "\n".join(priced(done.table))
    text = "\n".join([text, *thorough.said])
    if done.convergence is not None:
        text += f"\n{convergence.as_text(done.convergence)}"
    for found in search.found:
        text += f"\n{budget.as_text(found)}"
        if why := budget.missed(found, search.goal):
            raise options.MissedError(why, text)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """What --thorough asks for.  said: what came of it, for people."""

    refinements: "tuple[Refinement, ...]" = ()
    said: list[str] = field(default_factory=list)


@contextmanager
def _chosen(arguments: argparse.Namespace) -> "Iterator[_Chosen]":
    """As asked for; its progress shows in the block.  UsageError: --plain as well."""
    if not arguments.thorough:
        yield _Chosen()
        return
    if arguments.plain:
        raise options.UsageError(f"{THOROUGH} and --plain contradict each other")
    from neon8.refine.thorough import Found, as_text, thorough

    said: list[str] = []
    with ExitStack() as stack:
        watch = _bar(stack, "choose", "layer", quiet=arguments.quiet)

        def tell(found: Found) -> None:
            said.append(as_text(found))

        shapes = options.shapes_of(arguments)
        refinement = thorough(arguments.model, shapes=shapes, watch=watch, tell=tell)
        yield _Chosen(refinements=(refinement,), said=said)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What --target-sqnr and --max-cost ask for.  found: what came of it."""

    goal: "Goal"
    refinements: "tuple[Refinement, ...]" = ()
    found: "list[Found]" = field(default_factory=list)


@contextmanager
def _search(arguments: argparse.Namespace) -> "Iterator[_Search]":
    """The search that is asked for, if there is one; its progress shows in the block.

    UsageError: a curve without a search.  SetupError, as options.check_output().
    """
    from neon8.refine.budget import more_bits
    from neon8.refine.precision import Goal

    goal = Goal(sqnr_db=arguments.target_sqnr, cost=arguments.max_cost)
    if goal == Goal():
        if arguments.curve is not None:
            raise options.UsageError(f"{CURVE} is for {TARGET} and {COST}")
        yield _Search(goal=goal)
        return
    if arguments.curve is not None:
        options.check_output(arguments.curve, arguments.model, arguments.output)
    found: list[Found] = []
    with ExitStack() as stack:
        watch = _bar(stack, "search", "run", quiet=arguments.quiet)
        search = more_bits(
            arguments.model,
            goal,
            shapes=options.shapes_of(arguments),
            curve=arguments.curve,
            watch=watch,
            tell=found.append,
        )
        yield _Search(goal=goal, refinements=(search,), found=found)


def _bar(stack: ExitStack, what: str, unit: str, *, quiet: bool) -> "Watch":
    """A progress bar that begins when it is told that 0 are done."""
    from neon8.cli.progress import counter
    from neon8.refine.sensitivity import nobody

    bars: list[Watch] = []

    def watch(done: int, total: int | None) -> None:
        if done == 0:  # that of the samples is at its end
            bars.append(stack.enter_context(counter(what, unit, quiet=quiet)) or nobody)
        bars[-1](done, total)

    return watch
