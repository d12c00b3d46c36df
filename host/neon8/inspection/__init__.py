# SPDX-License-Identifier: Apache-2.0
"""What is in a file: models, scale tables and libraries, as text for people."""
