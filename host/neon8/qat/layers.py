# SPDX-License-Identifier: Apache-2.0
"""The layers of a network in training, and how each is written to ONNX."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from neon8.qat.ranges import Ranges
from neon8.qat.rounding import BIAS, WEIGHT, rounded_rows
from neon8.qat.writer import Writer
from neon8.quant.weights import weight_scales


class Layer(nn.Module):
    """Base of all layers.  moves: its output holds values of its inputs only."""

    moves = False

    def write(self, w: Writer, name: str, inputs: Sequence[str]) -> str:
        """Add its nodes, the last of which gives `name`; the name of the output."""
        raise NotImplementedError


class Weighted(Layer):
    """A convolution or fully connected layer with the normalization that follows.

    The weights that are rounded are those that the normalization is folded into, with
    its moving averages, as they will run (Jacob et al., section 3.2). While statistics
    are those of batches the output is scaled from the one to the other, so that
    weights do not jitter with the batches (Krishnamoorthi, section 3.2.2 of arXiv
    1806.08342): with s, m of the batch and S, M averaged, and G = gamma / S,

        y = conv(x, round(w G)) S / s + beta - gamma m / s          before freeze()
        y = conv(x, round(w G)) + round(beta - G M)                 after it

    source: the ranges of what it reads, with whose scale the bias is rounded.
    """

    source: Ranges
    norm: Any

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.conv = isinstance(layer, nn.Conv2d)
        self.weight, self.bias = layer.weight, layer.bias
        self.options: dict[str, Any] = {}
        if self.conv:
            self.options = {
                key: getattr(layer, key)
                for key in ("stride", "padding", "dilation", "groups")
            }
        self.norm = None
        self.frozen = False

    @property
    def depthwise(self) -> bool:
        """One input and one output channel in every group."""
        groups = self.options.get("groups", 1)
        return bool(groups > 1 and self.weight.shape[:2] == (groups, 1))

    def folded(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights and bias, (O, ...) and (O,), with the averaged statistics."""
        bias = self.bias
        if bias is None:
            bias = self.weight.new_zeros(len(self.weight))
        if self.norm is None:
            return self.weight, bias
        gamma, beta = self._affine()
        gain = gamma / self._deviation(self.norm.running_var)
        rows = (-1, *(1,) * (self.weight.ndim - 1))
        mean = self.norm.running_mean.clone()
        return self.weight * gain.reshape(rows), beta + (bias - mean) * gain

    def scales(self, weight: torch.Tensor, bias: torch.Tensor) -> Any:
        """(O,) float64: those that neon8 chooses for such weights."""
        absmax = weight.detach().abs().flatten(1).amax(1)
        chosen = weight_scales(
            "",
            source="",
            absmax=absmax.cpu().numpy(),
            bias=bias.detach().cpu().numpy(),
            input_scale=self.source.scale(),
        )
        return np.array(chosen.weight_scales)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As it will run, up to what statistics of a batch change."""
        weight, bias = self.folded()
        scales = torch.from_numpy(self.scales(weight, bias)).to(x.device)
        y = self._apply(x, rounded_rows(weight, scales, WEIGHT))
        if self.norm is None or self.frozen or not self.training:
            unit = scales * self.source.scale()
            return y + self._rows(rounded_rows(bias, unit, BIAS), y)
        return self._normalized(self._apply(x, self.weight), y)

    def _normalized(self, raw: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """y with the statistics of this batch, which are averaged in.

        raw: of the float weights, without a bias, which normalization takes away.
        """
        norm = self.norm
        axes = (0, *range(2, raw.ndim))
        mean, variance = raw.mean(axes), raw.var(axes, unbiased=False)
        gamma, beta = self._affine()
        deviation = self._deviation(variance)
        averaged = self._deviation(norm.running_var).clone()
        with torch.no_grad():
            norm.num_batches_tracked += 1
            rate = norm.momentum
            if rate is None:
                rate = 1 / float(norm.num_batches_tracked)
            count = raw.numel() // raw.shape[1]
            shift = 0 if self.bias is None else self.bias
            norm.running_mean.lerp_(mean + shift, rate)
            norm.running_var.lerp_(variance * (count / max(count - 1, 1)), rate)
        y = y * self._rows(averaged / deviation, y)
        return y + self._rows(beta - gamma * mean / deviation, y)

    def _affine(self) -> tuple[torch.Tensor, torch.Tensor]:
        norm = self.norm
        if norm.affine:
            return norm.weight, norm.bias
        return torch.ones_like(norm.running_var), torch.zeros_like(norm.running_var)

    def _deviation(self, variance: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(variance + self.norm.eps)

    def _apply(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if self.conv:
            return functional.conv2d(x, weight, None, **self.options)
        return functional.linear(x, weight)

    @staticmethod
    def _rows(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return values.reshape(-1, *(1,) * (like.ndim - 2))

    def write(self, w: Writer, name: str, inputs: Sequence[str]) -> str:
        """Conv or Gemm with the folded weights."""
        values = (each.detach().cpu().numpy() for each in self.folded())
        parts = ("weight", "bias")
        names = [
            w.constant(f"{name}.{part}", value)
            for part, value in zip(parts, values, strict=True)
        ]
        if not self.conv:
            return w.node("Gemm", name, (*inputs, *names), transB=1)
        return w.node(
            "Conv",
            name,
            (*inputs, *names),
            kernel_shape=list(self.weight.shape[2:]),
            strides=list(self.options["stride"]),
            pads=[*self.options["padding"]] * 2,
            dilations=list(self.options["dilation"]),
            group=self.options["groups"],
        )


class Activate(Layer):
    """min(max(x, lo), hi), or a slope below zero."""

    def __init__(
        self, lo: float = -np.inf, hi: float = np.inf, slope: float = 1.0
    ) -> None:
        super().__init__()
        self.lo, self.hi, self.slope = float(lo), float(hi), float(slope)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The activation in float."""
        if self.slope != 1:
            return functional.leaky_relu(x, self.slope)
        return x.clamp(self.lo, self.hi)

    def write(self, w: Writer, name: str, inputs: Sequence[str]) -> str:
        """Relu, Clip or LeakyRelu."""
        if self.slope != 1:
            return w.node("LeakyRelu", name, inputs, alpha=self.slope)
        if (self.lo, self.hi) == (0, np.inf):
            return w.node("Relu", name, inputs)
        ends = [
            w.constant(f"{name}.{end}", np.float32(value)) if np.isfinite(value) else ""
            for end, value in (("lo", self.lo), ("hi", self.hi))
        ]
        return w.node("Clip", name, (*inputs, *ends))


class Plain(Layer):
    """A function of torch, and the ONNX operator that is the same.

    operator: "" for what leaves its input alone once trained.  attributes: for ONNX.
    """

    def __init__(
        self,
        function: Callable[..., torch.Tensor],
        operator: str,
        *,
        moves: bool = False,
        **attributes: Any,
    ) -> None:
        super().__init__()
        self.function, self.operator, self.moves = function, operator, moves
        self.attributes = attributes

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """Compute it in float."""
        return self.function(*tensors)

    def write(self, w: Writer, name: str, inputs: Sequence[str]) -> str:
        """One node, or none: the input."""
        if not self.operator:
            return inputs[0]
        return w.node(self.operator, name, inputs, **self.attributes)


class Pool(Layer):
    """Maximum or average of windows, or of whole planes.

    layer: nn.MaxPool2d, nn.AvgPool2d, or None for the average of a whole plane.  keep:
    such an average keeps its dimensions of 1.
    """

    def __init__(self, layer: nn.Module | None, *, keep: bool = True) -> None:
        super().__init__()
        self.layer, self.keep = layer, keep
        self.moves = isinstance(layer, nn.MaxPool2d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute it in float."""
        if self.layer is None:
            return x.mean((2, 3), keepdim=self.keep)
        result: torch.Tensor = self.layer(x)
        return result

    def write(self, w: Writer, name: str, inputs: Sequence[str]) -> str:
        """MaxPool, AveragePool or GlobalAveragePool."""
        if self.layer is None:
            if self.keep:
                return w.node("GlobalAveragePool", name, inputs)
            whole = w.node("GlobalAveragePool", f"{name}.planes", inputs)
            return w.node("Flatten", name, [whole])
        kernel, strides, pads = (
            pair(getattr(self.layer, key))
            for key in ("kernel_size", "stride", "padding")
        )
        options = {
            "kernel_shape": list(kernel),
            "strides": list(strides),
            "pads": [*pads] * 2,
            "ceil_mode": int(self.layer.ceil_mode),
        }
        if self.moves:
            options["dilations"] = list(pair(self.layer.dilation))
            return w.node("MaxPool", name, inputs, **options)
        options["count_include_pad"] = int(self.layer.count_include_pad)
        return w.node("AveragePool", name, inputs, **options)


def pair(value: Any) -> tuple[int, int]:
    """A setting of height and width, which torch takes as one number, too."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])
