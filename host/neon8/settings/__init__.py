# SPDX-License-Identifier: Apache-2.0
"""What a user can choose: one object for each stage, made by one reader.

stages.py has the fields, fields.py what a field says of itself, reader.py makes the
objects from options, keywords or a TOML file, and methods.py reads what --method takes.
"""
