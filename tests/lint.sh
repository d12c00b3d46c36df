#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What every source file must satisfy before it is worth running; all complaints at once.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0
.venv/bin/ruff check --quiet --output-format concise . || status=1
.venv/bin/ruff format --check --quiet . || status=1
.venv/bin/mypy || status=1
.venv/bin/python -m pytest -q tests/host/test_sources.py || status=1
find runtime host/native tests bench \( -name '*.[ch]' -o -name '*.[ch]pp' \) -exec .venv/bin/clang-format --dry-run -Werror {} + || status=1
exit $status
