# SPDX-License-Identifier: Apache-2.0
"""Machines that a shell reaches, and models that neon8-runner runs there."""
