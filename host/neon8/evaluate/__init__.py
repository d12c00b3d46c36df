# SPDX-License-Identifier: Apache-2.0
"""What int8 costs: networks run side by side on samples."""
