# SPDX-License-Identifier: Apache-2.0
"""Samples: arrays, .npz files and folders of images, and their preprocessing."""
