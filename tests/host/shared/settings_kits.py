# SPDX-License-Identifier: Apache-2.0
"""Settings as tests write them: by the names of the fields alone."""

from neon8.settings.reader import takes


@takes("network", "data", "observe", "solve", "refine", "judge")
def settings_with(*, settings):
    return settings
