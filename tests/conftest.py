# SPDX-License-Identifier: Apache-2.0
"""How hypothesis behaves, on this machine and inside the emulated one.

The verdict of a run must not depend on luck, so the examples are derived from the test;
`pytest --hypothesis-profile=explore` looks further.
"""

import os

import hypothesis

# Tests that import onnxruntime themselves write nothing into the user's home, either.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

SLOW = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]

hypothesis.settings.register_profile(
    "neon8", deadline=None, derandomize=True, suppress_health_check=SLOW
)
hypothesis.settings.register_profile(
    "explore", deadline=None, print_blob=True, suppress_health_check=SLOW
)
# Half of the examples, for where others have run all of them.
hypothesis.settings.register_profile(
    "half",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=SLOW,
)
hypothesis.settings.load_profile("neon8")
