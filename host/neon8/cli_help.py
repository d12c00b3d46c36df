# SPDX-License-Identifier: Apache-2.0
"""What --help says beside the options: examples, and what needs explaining."""

OVERVIEW = """\
From a float ONNX network to an int8 network on ARM, every step on this PC:

  neon8 calibrate net.onnx --data train.npz -o net.scales.json   choose scales
  neon8 compile   net.onnx --scales net.scales.json -o net.n8    lower, prove, write
  neon8 run       net.n8 --input x.npy -o y.npy --target aarch64 here, or emulated
  neon8 evaluate  net.n8 --data test.npz --reference net.onnx    what int8 costs
"""

DATA = """\
data:
  x.npz               arrays x (and y: labels, one integer a sample)
  x.npy               samples along the first axis
  folder/             .npy files, one sample each, in the order of their names
  folder/             JPEG and PNG images, with an optional labels.txt of lines
                      'file class', which then also gives the order
  uint8 arrays are N H W C images; float32 arrays are what the network takes.

preprocessing, a TOML file; value = (raw * scale - mean) / std, N C H W float32:
  size = [224, 224]           # height, width
  resize = "short"            # none: centre crop only | stretch | short side, then crop
  short = 256                 # for resize = "short"
  color = "rgb"               # rgb | bgr | gray
  scale = 0.00392156862745098
  mean = [0.485, 0.456, 0.406]
  std = [0.229, 0.224, 0.225]
"""

CALIBRATE = f"""\
examples:
  neon8 calibrate net.onnx --data train.npz -o net.scales.json
  neon8 calibrate net.onnx --data photos/ --preprocess imagenet.toml --limit 200 \\
      --method kl -o net.scales.json

The table is JSON, made to be read and edited: change a scale and compile again.

methods:
  mse          least squared error of what is rounded and clipped (default)
  kl           least Kullback-Leibler divergence, exact zeros left out
  kl2017       the pseudo-code published for TensorRT in 2017, to the letter
  minmax       everything that was seen
  percentile   99.99 % of what was seen
schemes:
  auto         unsigned where a tensor is never negative, else asymmetric (default)
  symmetric    zero point 0 everywhere

{DATA}"""

COMPILE = """\
examples:
  neon8 compile net.onnx --scales net.scales.json -o net.n8
  neon8 compile net.onnx --scales net.scales.json --io int8 -o net.n8

--io float  the network takes and gives float32 as the ONNX network does (default)
--io int8   it takes and gives int8; real = scale * (q - zero_point), and
            `neon8 inspect net.n8` prints both numbers

Every accumulator is proved to stay inside int32 for any input; a network for which the
proof fails is refused. One .n8 file serves every processor.
"""

RUN = """\
examples:
  neon8 run net.n8 --input x.npy -o y.npy
  neon8 run net.n8 --input x.npy -o y.npy --target aarch64 --cpu cortex-a53
  neon8 run net.n8 --input x.npy --isa c

X.npy holds one sample, with or without its batch axis, or many along the first axis;
the outputs come in the same order. A network with several inputs takes an .npz with one
array for each; one with several outputs writes an .npz. Without -o a summary is
printed.
A network with int8 inputs takes int8 arrays, in which nothing is converted.

--target aarch64 runs the NEON kernels in an ARM Python under qemu-user, built by
`make setup`; the bytes are the same as on this PC.
"""

EVALUATE = f"""\
examples:
  neon8 evaluate net.onnx --data test.npz
  neon8 evaluate net.n8 --data test.npz --reference net.onnx
  neon8 evaluate net.n8 --data photos/ --preprocess imagenet.toml --limit 500 \\
      --target aarch64 --reference net.onnx --json

top-1, top-5   share of samples whose label is the largest, or among the five largest,
               of the first output; of equal values the lower index counts as larger
agreement      share of samples with the same top-1 as the reference
SQNR           10 log10(sum ref^2 / sum (ref - out)^2) over all outputs, in dB
--json         one object {{"n", "top1", "top5", "agreement", "sqnr_db"}}; percentages
               from 0 to 100; null: no labels, no reference, or no error at all

A network with int8 inputs and outputs is fed and read through its own scales.

{DATA}"""

INSPECT = """\
examples:
  neon8 inspect net.n8                    inputs, outputs, steps, kernels, proofs
  neon8 inspect net.n8 --target aarch64   with the kernels that ARM would choose
  neon8 inspect net.scales.json           scales, ranges, guards that fired
  neon8 inspect build/aarch64/libneon8.so machine, exports, kernels, alignment
"""

CONVERT = """\
example:
  neon8 convert net.scales.json --to ncnn -o net.table

ncnn   the .table of ncnn2int8: 127 / threshold, weights per channel, then inputs. ncnn
       is symmetric and takes the larger end of each range, so calibrate with --scheme
       symmetric for this purpose.
"""
