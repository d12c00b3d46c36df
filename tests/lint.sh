#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What every source file must satisfy before it is worth running.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/ruff check --quiet .
.venv/bin/ruff format --check --quiet .
.venv/bin/mypy
find runtime tests -name '*.[ch]' -exec .venv/bin/clang-format --dry-run -Werror {} +
