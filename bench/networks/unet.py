# SPDX-License-Identifier: Apache-2.0
"""U-Net with BatchNormalization, upwards by ConvTranspose or by bilinear Resize.

Ronneberger, Fischer, Brox, "U-Net: Convolutional Networks for Biomedical Image
Segmentation", 2015, in the form of the implementation Pytorch-UNet: padded, from three
channels to one.
"""

from bench.networks.builder import Net


def unet(net: Net, size: int, *, bilinear: bool) -> None:
    """Logits of each pixel.  size: a multiple of 16."""
    halved = 2 if bilinear else 1
    x = double(net, net.input("image", 3, size, size), "inc", 64, 64)
    skips = [x]
    for number, out in enumerate((128, 256, 512, 1024 // halved), start=1):
        x = double(net, net.max_pool(x, 2, 2), f"down{number}", out, out)
        skips.append(x)
    skips.pop()
    for number, out in enumerate((512, 256, 128, 64), start=1):
        name = f"up{number}"
        if bilinear:
            x, inside = net.resize(x, "linear", "align_corners"), out
        else:
            shape = {"stride": 2, "pads": [0] * 4, "transposed": True}
            x = net.conv(x, f"{name}/up", net.channels(out), 2, **shape)
            inside = out
        x = net.concat([skips.pop(), x])
        last = out // halved if number < 4 else out
        x = double(net, x, f"{name}/conv", inside, last)
    net.output(net.conv(x, "outc", 1, plain=True, gain=1), "logits")


def double(net: Net, x: str, name: str, inside: int, out: int) -> str:
    """Twice convolution, BatchNormalization, Relu."""
    x = net.relu(net.conv_norm(x, f"{name}/0", net.channels(inside), 3))
    return net.relu(net.conv_norm(x, f"{name}/3", net.channels(out), 3))
