# SPDX-License-Identifier: Apache-2.0
"""Lets these tests import their helpers, wherever pytest was started.

The same tests run on the PC and inside the emulated ARM Python, where only numpy, cffi,
pytest and hypothesis are installed. N8_LIBRARY chooses the library.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]
