# SPDX-License-Identifier: Apache-2.0
"""Attention as PyTorch exports it, and blocks of transformers."""

from collections.abc import Callable

from bench.networks.builder import Net


def heads_of(net: Net, x: str, heads: int) -> str:
    """Tokens (B, T, C) as (B, heads, T, C / heads)."""
    _, tokens, channels = net.shape(x)
    y = net.reshape(x, -1, tokens, heads, channels // heads)
    return net.transpose(y, 0, 2, 1, 3)


def attend(
    net: Net,
    q: str,
    k: str,
    v: str,
    *,
    bias: Callable[[str], str] | None = None,
    shared: bool = True,
) -> str:
    """softmax(q k^T / sqrt(d) + bias) v of (B, heads, T, d), as tokens (B, T, C).

    shared: q and k are scaled by a root each, as by scaled_dot_product_attention();
    else the product is.
    """
    width = net.shape(q)[-1]
    k = net.transpose(k, 0, 1, 3, 2)
    if shared:
        q, k = (net.times(each, width**-0.25) for each in (q, k))
    scores = net.matmul(q, k)
    if not shared:
        scores = net.times(scores, width**-0.5)
    if bias:
        scores = bias(scores)
    y = net.transpose(net.matmul(net.softmax(scores), v), 0, 2, 1, 3)
    _, tokens, heads, depth = net.shape(y)
    return net.reshape(y, -1, tokens, heads * depth)


def joined_heads(net: Net, x: str, name: str, heads: int) -> list[str]:
    """Q, K and V of one projection; (3, B, heads, T, d) is taken apart."""
    _, tokens, channels = net.shape(x)
    y = net.project(x, f"{name}/qkv", 3 * channels)
    y = net.reshape(y, -1, tokens, 3, heads, channels // heads)
    y = net.transpose(y, 2, 0, 3, 1, 4)
    return [net.take(y, index, 0) for index in range(3)]


def joined(net: Net, x: str, name: str, heads: int, **options) -> str:
    """Attention as timm has it."""
    q, k, v = joined_heads(net, x, name, heads)
    y = attend(net, q, k, v, **options)
    return net.project(y, f"{name}/proj", net.shape(x)[-1])


def apart(
    net: Net,
    x: str,
    name: str,
    heads: int,
    *,
    source: str = "",
    key_bias: bool = True,
    **options,
) -> str:
    """Attention with three projections.  source: what K and V are made of, not x."""
    channels = net.shape(x)[-1]
    made = [
        heads_of(net, net.project(of, f"{name}/{part}", channels, bias=bias), heads)
        for part, of, bias in (
            ("q", x, True),
            ("k", source or x, key_bias),
            ("v", source or x, True),
        )
    ]
    return net.project(attend(net, *made, **options), f"{name}/out", channels)


def mlp(
    net: Net,
    x: str,
    name: str,
    hidden: int,
    activation: Callable[[str], str] | None = None,
) -> str:
    """Two projections with an activation, GELU, between them."""
    y = (activation or net.gelu)(net.project(x, f"{name}/fc1", hidden))
    return net.project(y, f"{name}/fc2", net.shape(x)[-1])


def block(
    net: Net,
    x: str,
    name: str,
    attention: Callable[[str, str], str],
    *,
    ratio: float = 4,
    epsilon: float = 1e-6,
    activation: Callable[[str], str] | None = None,
    scale: tuple[float, float] | None = None,
) -> str:
    """x + attention(norm(x)), then x + mlp(norm(x)).

    attention: of tokens, under a name.  scale: bounds of what each branch is multiplied
    by, for every channel.
    """

    def scaled(y: str, name: str) -> str:
        return net.gain(y, name, *scale) if scale else y

    y = attention(net.layer_norm(x, f"{name}/norm1", epsilon), f"{name}/attn")
    x = net.add(x, scaled(y, f"{name}/ls1"))
    hidden = int(net.shape(x)[-1] * ratio)
    y = net.layer_norm(x, f"{name}/norm2", epsilon)
    y = mlp(net, y, f"{name}/mlp", hidden, activation)
    return net.add(x, scaled(y, f"{name}/ls2"))


def tokens(net: Net, x: str) -> str:
    """Pixels of an image as tokens (B, H W, C)."""
    _, channels, height, width = net.shape(x)
    y = net.reshape(x, -1, channels, height * width)
    return net.transpose(y, 0, 2, 1)


def pixels(net: Net, x: str, height: int, width: int) -> str:
    """Tokens as an image."""
    y = net.transpose(x, 0, 2, 1)
    return net.reshape(y, -1, net.shape(x)[-1], height, width)
