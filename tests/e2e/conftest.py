# SPDX-License-Identifier: Apache-2.0
"""Which levels the tests below compare, and which they cannot."""

from levels import levels, untested


def pytest_report_header() -> list[str]:
    missing = ", ".join(untested())
    return [
        f"levels: {', '.join(levels())}",
        *([f"NOT TESTED, as not here: {missing}"] if missing else []),
    ]
