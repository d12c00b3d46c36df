# SPDX-License-Identifier: Apache-2.0
"""What --help says beside the options: examples, and what needs explaining."""

from neon8.cli.options_methods import CHOOSING, OVERRIDE
from neon8.formats.registry import help_lines

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

{CHOOSING}
{OVERRIDE}
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

COMPARE = f"""\
examples:
  neon8 compare net.calib net.onnx --data test.npz
  neon8 compare net.calib net.onnx --data photos/ --preprocess imagenet.toml \\
      --skip 100 --limit 200 --methods mse kl percentile:99.9 --schemes auto

Every method is solved with every scheme, compiled and run by the int8 library on this
PC, whose results are those of the device to the last bit. Take other samples than for
the calibration. The table has the best by SQNR first.

SQNR           10 log10(sum ref^2 / sum (ref - out)^2) over all outputs, in dB; of a
               network that ends in Softmax, over what goes into it
agreement      share of samples with the same top-1 as the float network
guards         number of tensors with a reason code in the table
top-1          share of samples whose label is the largest, if there are labels
--json         {{"reference": {{...}}, "rows": [{{"method", "scheme", "guards",
               "failure", "n", "top1", "top5", "agreement", "sqnr_db"}}, ...]}}

{CHOOSING}
{DATA}"""

INSPECT = """\
examples:
  neon8 inspect net.n8                    inputs, outputs, steps, kernels, proofs
  neon8 inspect net.n8 --target aarch64   with the kernels that ARM would choose
  neon8 inspect net.scales.json           scales, ranges, guards that fired
  neon8 inspect net.calib                 samples, and what was seen in each tensor
  neon8 inspect build/aarch64/libneon8.so machine, exports, kernels, alignment
"""

CONVERT = f"""\
examples:
  neon8 convert net.scales.json --to ncnn -o net.table
  neon8 convert net.scales.json --to ncnn --ncnn-param net.param -o net.table
  neon8 convert net.scales.json --to qdq --model net.onnx -o net_qdq.onnx
  neon8 convert calibration.cache --to neon8 --model net.onnx -o net.scales.json
  neon8 convert weights.table --to neon8 --onto net.scales.json -o new.scales.json

formats, read and written:
{help_lines()}
What the target needs and A lacks comes from the network (--model) or from a table of
ours (--onto), or is an error that names it; what gets lost is said in a line.
--names       {{"old": "new", ...}}, of tensors, layers and weights
--ncnn-param  ncnn's tools look for the layer names of this file; the order of its
              convolutions and inner products must be that of the network
"""
