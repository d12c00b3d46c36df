# SPDX-License-Identifier: Apache-2.0
"""neon8 package."""

import argparse

from neon8.cli import options
from neon8.package import KINDS
from neon8.settings.reader import add_options

SUMMARY = "write a model as what your build takes: library, wrapper and example"

HELP = """\
examples:
  neon8 package net.n8 --for cmake -o net
  neon8 package net.n8 --for cmake --target linux-aarch64 --embed -o net
  neon8 package net.n8 --for android -o net
  neon8 package net.n8 --for cmake --labels labels.txt --preprocess p.toml -o net

kinds:
  cmake          a folder for add_subdirectory: the library, the model, a wrapper in C
                 with the inputs and outputs of this model, an example and its test
  android        the library as an AAR, for Java, Kotlin and C, the model as an asset, a
                 wrapper in Java and an example
  python         a package that pip installs, with the model in it and a typed class;
                 it depends on neon8
  deb            a Debian package for each target, of the model and a program that runs
                 it; it depends on libneon8-1
  static-binary  a program for each target with library and model in it, that any Linux
                 runs, from .npy or raw files to .npy files

The example runs on a stored input and compares with the bytes of this PC. The command
builds and runs it for each target that this machine has a compiler and qemu for, and
says what it could not check; if anything differs, nothing is written.

The folder is written whole or not at all. One that is there already is replaced if it
is a package in which no file was changed or added.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's grammar."""
    options.model(parser, "MODEL.n8", "the int8 network")
    parser.add_argument(
        "--for", dest="kind", choices=KINDS, required=True, help="the kind of package"
    )
    parser.add_argument(
        "-o",
        "--output",
        dest="folder",
        type=options.INPUT,
        required=True,
        metavar="FOLDER",
        help="the folder to write",
    )
    add_options(parser, "package")


def run(arguments: argparse.Namespace) -> str:
    """Write, check, and say what was checked."""
    from neon8 import text
    from neon8.package.package import package_model

    done = package_model(
        arguments.model, arguments.kind, arguments.folder, settings=arguments.settings
    )
    wrapper = done.wrapper
    said = [f"{arguments.folder}: {wrapper.name}, for {', '.join(done.targets)}"]
    said += [f"  {text.printable(line)}" for line in done.checked]
    return "\n".join(said)
