# SPDX-License-Identifier: Apache-2.0
"""Networks of PyTorch and Keras: written as ONNX, with the batches that they take.

Nothing here is loaded unless such a network is given.
"""

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from neon8.arrays import Array
from neon8.errors import DataError, GraphError, SetupError

OPSET = 17
"""The last one that PyTorch's exporter without onnxscript knows whole."""


def framework_of(model: object) -> str | None:
    """'torch' or 'keras' for a network of theirs, None for all else."""
    modules = {each.__module__.partition(".")[0] for each in type(model).mro()}
    return next((name for name in ("torch", "keras") if name in modules), None)


def exported(model: Any, data: Any, path: Path) -> Iterator[dict[str, Array]]:
    """Write a network as ONNX, with a batch of 1, and give its samples by input name.

    data: a loader, or anything else that yields batches: an array or a tensor; a tuple
    or a list, of which the first is the input and the rest are labels; or a dict by
    the names of the network's arguments, of which others are left out. The first batch
    is an example for the export.  DataError: no such batches.  GraphError: it cannot be
    written.  SetupError: a package that writes it is missing.
    """
    of_torch = framework_of(model) == "torch"
    if isinstance(data, str | Path):
        text = "a network that is exported needs batches as it takes them, not a path"
        raise DataError(f"{data}: {text}; give a loader or arrays")
    names = _arguments(model.forward) if of_torch else list(model.input_names)
    if not names:
        text = "forward() names no inputs, which an ONNX file needs; export the network"
        raise DataError(f"{type(model).__name__}: {text} and give the file")
    batches = iter([data] if hasattr(data, "shape") else data)
    first = next(batches, None)
    if first is None:
        raise DataError("data: there is no batch")
    example = _named(first, names)
    (_export_torch if of_torch else _export_keras)(model, example, path)
    return (_named(batch, names) for batch in chain([first], batches))


def _arguments(function: Any) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(function).parameters.values()
    return [each.name for each in found if each.kind in kinds]


def _named(batch: Any, names: list[str]) -> dict[str, Array]:
    """The inputs in a batch.  DataError."""
    if isinstance(batch, list | tuple) and batch:
        return _named(batch[0], names)
    if not isinstance(batch, Mapping):
        batch = {names[0]: batch}
    found = {name: _array(batch[name]) for name in names if name in batch}
    if not found or any(each.ndim == 0 for each in found.values()):
        text = f"a batch has {', '.join(map(str, batch))}, none of them an array"
        raise DataError(f"data: {text} for one of {', '.join(names)}")
    return found


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Without what only training does; each part is as it was in the end."""
    import torch  # noqa: PLC0415 - loaded already: the module is its object

    training = {each: each.training for each in module.modules()}
    whole_layers = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # ONNX has no such operator
    module.eval()
    try:
        yield
    except torch.onnx.errors.OnnxExporterError as error:
        text = f"{type(module).__name__}: PyTorch cannot write it as ONNX"
        raise GraphError(f"{text}: {' '.join(str(error).split())}") from error
    finally:
        torch.backends.mha.set_fastpath_enabled(whole_layers)
        for each, was in training.items():
            each.training = was


def _export_torch(module: Any, example: Mapping[str, Array], path: Path) -> None:
    import torch  # noqa: PLC0415 - as above

    place = next(iter(module.state_dict().values()), torch.zeros(())).device
    one = {name: torch.as_tensor(each[:1]).to(place) for name, each in example.items()}
    with _evaluating(module), torch.no_grad(), warnings.catch_warnings():
        # The other exporter wants a package more, and writes names of its own.
        warnings.simplefilter("ignore", DeprecationWarning)
        result = module(**one)
        if isinstance(result, Mapping):
            outputs = [f"{each}_output" if each in one else each for each in result]
        else:
            count = len(result) if isinstance(result, list | tuple) else 1
            outputs = [f"output_{i}" for i in range(count)] if count > 1 else ["output"]
        written = module
        takes = inspect.signature(module.forward).parameters.values()
        if any(e.name not in one or e.kind is e.KEYWORD_ONLY for e in takes):
            # Left to itself the exporter makes inputs of the others, too.
            written = torch.nn.Module()
            written.net = module
            written.forward = lambda *values: module(
                **dict(zip(one, values, strict=True))
            )
            written.eval()
        torch.onnx.export(
            written,
            tuple(one.values()),
            str(path),
            input_names=list(one),
            output_names=outputs,
            opset_version=OPSET,
            dynamo=False,
        )


def _export_keras(model: Any, example: Mapping[str, Array], path: Path) -> None:
    try:
        import tensorflow as tf  # noqa: PLC0415 - slow, and few have it
        import tf2onnx  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        text = f"{error.name} is not installed, which writes a network of Keras as ONNX"
        raise SetupError(f"{text}; run 'pip install tf2onnx'") from error
    signature = [
        tf.TensorSpec((1, *each.shape[1:]), each.dtype, name=name)
        for name, each in example.items()
    ]
    tf2onnx.convert.from_keras(model, signature, opset=OPSET, output_path=str(path))
