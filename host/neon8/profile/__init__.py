# SPDX-License-Identifier: Apache-2.0
"""What a model will take on a processor that is not there."""
