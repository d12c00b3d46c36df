# SPDX-License-Identifier: Apache-2.0
"""What int8 loses on trained networks, and on what was made of them to be hard.

make accuracy ZOO=folder
"""

import argparse
import logging
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tqdm import tqdm

import neon8
from bench import pages
from bench.accuracy import networks, peers
from bench.accuracy.page import figures, page
from bench.accuracy.rows import (
    RECIPES,
    REWRITTEN,
    SEARCHES,
    Case,
    Row,
    cases,
    measure,
)

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "accuracy"
PEERS = BUILD / "peers"

Wanted = tuple[Case, str]


def measured(wanted: list[Wanted], workers: int) -> Iterator[tuple[Wanted, Row]]:
    """In the order in which they end."""
    with ProcessPoolExecutor(workers, initializer=_quiet) as pool:
        jobs = {pool.submit(measure, *one, PEERS): one for one in wanted}
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _quiet() -> None:
    logging.getLogger("neon8").setLevel(logging.ERROR)


def command(arguments: argparse.Namespace) -> str:
    """As it can be typed again, with the folder's name alone."""
    words = [".venv/bin/python", "-m", "bench.accuracy.report"]
    words += [arguments.zoo.resolve().name, "--write", str(arguments.write)]
    for name in ("networks", "recipes"):
        chosen = getattr(arguments, name)
        if chosen is not None:
            words += [f"--{name}", ",".join(chosen)]
    return shlex.join(words)


def main() -> int:
    """0 if no network was refused."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "zoo",
        type=Path,
        help=f"the folder of models and data, which its {networks.FILE} describes, or "
        f"else bench/accuracy/{networks.SAMPLE.name}",
    )
    parser.add_argument("--networks", metavar="A,B", help="only these")
    parser.add_argument(
        *("--recipes",),
        type=pages.some_of(RECIPES),
        metavar="A,B",
        help=f"these for all, of {', '.join(RECIPES)} (default: searches where the "
        f"description asks for them, and of rewritten networks {', '.join(REWRITTEN)})",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--write", type=Path, metavar="docs/accuracy.md")
    arguments = parser.parse_args()
    try:
        found = {one.name: one for one in networks.load(arguments.zoo)}
        if arguments.networks is not None:
            arguments.networks = pages.some_of(found)(arguments.networks)
    except (networks.DescriptionError, argparse.ArgumentTypeError) as error:
        parser.error(str(error))
    chosen = [
        case
        for name in arguments.networks or found
        for case in cases(found[name], BUILD / "models")
    ]
    recipes = [one for one in arguments.recipes or RECIPES if available(one)]
    wanted = [
        (case, recipe)
        for case in chosen
        for recipe in recipes
        if arguments.recipes or recipe in case.recipes
    ]
    wanted.sort(key=lambda one: one[1] not in SEARCHES)  # the longest first
    results = {}
    bar = tqdm(total=len(wanted), unit="row", disable=None)
    for (case, recipe), row in measured(wanted, arguments.workers):
        results[case.name, recipe] = row
        bar.write(f"{case.name:<30} {'  '.join(figures(row, recipe))}")
        bar.update()
    bar.close()
    if arguments.write:
        facts = {"command": command(arguments), "neon8": neon8.__version__}
        arguments.write.write_text(page(chosen, results, facts))
    return int(any("refused" in row for row in results.values()))


def available(recipe: str) -> bool:
    """False, with a line of why, for a peer that cannot be installed."""
    try:
        if recipe in peers.PEERS:
            peers.prepare(recipe, PEERS)
    except peers.PeerError as error:
        print(f"{recipe} is left out: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
