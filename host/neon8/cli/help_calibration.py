# SPDX-License-Identifier: Apache-2.0
"""What --help says about observe, merge and solve."""

from neon8.cli.help import DATA

OBSERVE = f"""\
examples:
  neon8 observe net.onnx --data train.npz -o net.calib
  neon8 observe net.onnx --data photos/ --preprocess imagenet.toml --workers 8 \\
      --until-stable --report convergence.json -o net.calib
  neon8 observe net.onnx --data train.npz --shard 3/16 -o net.3.calib

The file holds exact integer statistics of all tensors: the same samples give the same
bytes in any order, with any number of workers and in any split into shards.

While it runs, net.calib.journal keeps what is done. A run that was killed or
interrupted goes on from there when the same command is given again.

{DATA}"""

MERGE = """\
example:
  neon8 merge net.1.calib net.2.calib net.3.calib -o net.calib

Gives the bytes that observing all samples at once would have given. Files that share a
sample, or are of other models, engines or preprocessing, are refused.
"""

SOLVE = """\
examples:
  neon8 solve net.calib -o net.scales.json
  neon8 solve net.calib --method kl --scheme symmetric -o net.scales.json
  neon8 solve net.calib --override ranges.json -o net.scales.json

Needs neither the model nor the data; `neon8 calibrate --help` explains the methods.
"""
