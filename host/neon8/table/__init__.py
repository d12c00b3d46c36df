# SPDX-License-Identifier: Apache-2.0
"""ScaleTable and the formats it is kept in, one module per format."""
