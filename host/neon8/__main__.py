# SPDX-License-Identifier: Apache-2.0
"""`python -m neon8` is the command `neon8`."""

import sys

from neon8.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
