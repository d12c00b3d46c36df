# SPDX-License-Identifier: Apache-2.0
"""An ONNX network that onnxruntime runs.  The only module that imports it."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial
from typing import Any, TypeVar

from neon8.arrays import Array

# From 1.31 on, importing it writes a device ID for telemetry into the user's home.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

Result = TypeVar("Result")

FACTS = {
    "engine": "onnxruntime",
    "version": str(onnxruntime.__version__),
    "provider": "CPUExecutionProvider",
    "optimization": "ORT_ENABLE_ALL",
}
"""Other builds, providers and levels round differently; thread count and batch do not
matter."""
TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(bool)": "bool",
    **{
        f"tensor({sign}int{bits})": f"{sign}int{bits}"
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
"""onnxruntime's types of samples, by the names that numpy gives them."""
SILENT = 4


class OnnxSession:
    """A network in memory, on one thread.  Errors: any that onnxruntime raises.

    session: onnxruntime's own.
    """

    def __init__(
        self, model: bytes, weights: Mapping[str, Array] | None = None
    ) -> None:
        """Load it.

        weights: initializers that `model` marks as external data, by name; onnxruntime
        may read them where they are.
        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = SILENT
        self._weights = weights
        self._options = onnxruntime.RunOptions()
        if weights:
            arrays = weights.values()
            values = [onnxruntime.OrtValue.ortvalue_from_numpy(a) for a in arrays]
            options.add_external_initializers(list(weights), values)
        made = partial(
            onnxruntime.InferenceSession,
            model,
            options,
            providers=["CPUExecutionProvider"],
        )
        self.session = _interruptible(made, partial(_cancel, options))

    def run(self, wanted: Iterable[str], inputs: Mapping[str, Array]) -> dict[str, Any]:
        """Run once; the outputs `wanted` by name."""
        names = list(wanted)
        run = partial(self.session.run, names, dict(inputs), self._options)
        return dict(zip(names, _interruptible(run, self.stop), strict=True))

    def run_bound(self, binding: Any) -> None:
        """Run once with an IoBinding of `session`."""
        run = partial(self.session.run_with_iobinding, binding, self._options)
        _interruptible(run, self.stop)

    def stop(self) -> None:
        """Make all runs end with an error, now and later; for Ctrl-C."""
        self._options.terminate = True

    def resume(self) -> None:
        """Let runs begin again."""
        self._options.terminate = False


def one_line(error: BaseException) -> str:
    """What onnxruntime says; it has no public base class of errors."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def _interruptible(work: Callable[[], Result], stop: Callable[[], None]) -> Result:
    """Do `work` in another thread, so that Ctrl-C can interrupt it.

    onnxruntime ignores signals, and a network may run for ever.  stop: makes it end.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    future = _helper().submit(work)
    try:
        return future.result()
    except KeyboardInterrupt:
        stop()
        wait([future])
        raise


@cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="neon8-onnxruntime")


def _cancel(options: Any) -> None:
    """Stop loading a session; onnxruntime before 1.21 cannot."""
    if hasattr(options, "set_load_cancellation_flag"):
        options.set_load_cancellation_flag(True)
