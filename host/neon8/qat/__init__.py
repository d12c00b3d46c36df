# SPDX-License-Identifier: Apache-2.0
"""Quantization-aware training with PyTorch: networks trained for the grid they run on.

    from neon8 import qat

    model = qat.prepare(model, example)   # a batch of real inputs
    ...                                   # your own training loop, as before
    model.freeze()                        # ranges and statistics stay
    ...                                   # train on a little
    model.export("net.q.onnx")            # QuantizeLinear, DequantizeLinear

Needs torch: pip install 'neon8[qat]'. Nothing else imports this package.
"""

try:
    import torch  # noqa: F401 - so that the message is ours
except ImportError as error:
    message = "neon8.qat needs torch: pip install 'neon8[qat]'"
    raise ImportError(message) from error

from neon8.qat.model import QatModel, prepare

__all__ = ["QatModel", "prepare"]
