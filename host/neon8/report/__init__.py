# SPDX-License-Identifier: Apache-2.0
"""A report: what is known of a network in int8, gathered once and written thrice."""
