# SPDX-License-Identifier: Apache-2.0
"""What all commands that choose thresholds say about methods, schemes, overrides."""

import argparse

from neon8.calibrate.thresholds import methods
from neon8.errors import CalibrationError

CHOOSING = """\
methods:
  mse          least squared error of what is rounded and clipped (default)
  kl           least Kullback-Leibler divergence, exact zeros left out
  kl2017       the pseudo-code published for TensorRT in 2017, to the letter
  minmax       everything that was seen
  percentile   99.99 % of what was seen, exact zeros left out; percentile:99.9:all
               keeps 99.9 % and counts zeros, percentile:99.9 does not count them
  aciq         least expected error for a Gauss or Laplace distribution, the likelier
  legacy       like TensorRT's legacy calibrator: 99.99 % of |x|, exact zeros included;
               legacy:99.9:0.8 leaves values above 0.8 times the largest out of account
  eq           least error at the output of the layers that read the tensor, among 0.5
               to 2 times the range of mse; eq:cosine looks at the angle only
  auto         for each tensor, that of the methods above (but eq) with the least error
               at the output of the layers that read it
  Whatever the method, a range that clips more than 0.1 % of the energy is widened.
schemes:
  auto         unsigned where a tensor is never negative, else asymmetric (default)
  symmetric    zero point 0 everywhere
  unsigned     unsigned where a tensor is never negative, else symmetric, with a warning
  asymmetric   any zero point, for every tensor
  symmetric_with_uint8  unsigned where a tensor is never negative, else symmetric
"""

OVERRIDE = """\
overrides, a JSON file; they win over what the samples say:
  {"tensors": {"input": {"min": -1, "max": 1},
               "conv*": {"threshold": 6},
               "fc": {"scale": 0.05, "zero_point": -128},
               "pool": {"method": "minmax", "scheme": "symmetric"}}}
  A name wins over patterns. Tensors that share a scale share what is set for one.
  A range that covers less than a millionth of the values seen is refused.
"""


def method(text: str) -> str:
    """A method with or without its settings, for argparse."""
    try:
        return str(methods.parse(text))
    except CalibrationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
