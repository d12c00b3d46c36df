# SPDX-License-Identifier: Apache-2.0
"""Other tools that quantize, each with some settings, in an environment of its own.

peer_NAME.py has `quantized(model, samples, **setting)`, which returns the network with
QuantizeLinear and DequantizeLinear; it is imported in that environment alone.
"""

import hashlib
import importlib
import importlib.metadata
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from bench.accuracy.onnx_net import Net, attribute
from neon8.files import write_atomic

ROOT = Path(__file__).resolve().parents[2]
Samples = list[dict[str, np.ndarray]]

SHARED = ("numpy", "onnx", "onnxruntime", "protobuf", "torch")
"""What all environments have from this one, so that nothing but the peer differs."""
LINEAR = ("QuantizeLinear", "DequantizeLinear")
MINUTES = 40


class PeerError(Exception):
    """Why a peer has no environment, or made no network: one line."""


@dataclass(frozen=True, slots=True)
class Peer:
    """requirement: what pip installs; "" if nothing.  settings: the best one counts.

    torch: needs it, and shall not bring the build for GPUs, which is several GB.
    """

    requirement: str
    settings: Mapping[str, Mapping[str, object]]
    torch: bool = False

    @property
    def version(self) -> str:
        return self.requirement or f"onnxruntime=={_version('onnxruntime')}"


TF_ENHANCED = "post_training_tf_enhanced"
# Entropy of onnxruntime is MinMax: of its 128 bins for 128 levels none can go. uint8
# is the same grid as int8; reduce_range takes bits that only saturating sums want.
PEERS = {
    "onnxruntime": Peer(
        "",
        {
            "MinMax": {},
            "Percentile 99.99": {"method": "Percentile", "percentile": 99.99},
            "Percentile 99.9": {"method": "Percentile", "percentile": 99.9},
            "symmetric": {"symmetric": True},
        },
    ),
    "aimet": Peer(
        "aimet-onnx==2.42.0",
        {
            "min-max": {"scheme": "min_max"},
            "percentile": {"scheme": "post_training_percentile"},
            "tf-enhanced": {"scheme": TF_ENHANCED},
            "tf-enhanced, equalized": {"scheme": TF_ENHANCED, "equalize": True},
        },
        torch=True,
    ),
    "nncf": Peer(
        "nncf==3.4.0",
        {
            "fast bias correction": {},
            "bias correction": {"fast": False},
            "channel alignment": {"align": True},
        },
    ),
    "ncnn": Peer("", {"KL": {}}),
}


def _version(package: str) -> str:
    return importlib.metadata.version(package)


def prepare(name: str, folder: Path) -> Path:
    """The Python of this peer's environment, made if it is missing.  PeerError."""
    wanted = PEERS[name].requirement
    if not wanted:
        return Path(sys.executable)
    if PEERS[name].torch and not _installed("torch"):
        raise PeerError("it needs torch, which is not installed; see cross/setup.sh")
    known = [f"{each}=={_version(each)}" for each in SHARED if _installed(each)]
    place, stamp = folder / name, folder / f"{name}.installed"
    python = place / "bin" / "python"
    if stamp.exists() and stamp.read_text() == "\n".join([wanted, *known]):
        return python
    venv.create(place, clear=True, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    here = str(Path(np.__file__).parents[1])
    (packages / "shared.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    constraints = folder / "shared.txt"
    constraints.write_text("\n".join(known))
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    install = [*pip, "-c", constraints, wanted]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerError(f"pip cannot install {wanted}: {_last(done.stderr)}")
    stamp.write_text("\n".join([wanted, *known]))
    return python


def _installed(package: str) -> bool:
    try:
        return bool(_version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it says nothing"


def made(
    name: str, setting: str, model: Path, samples: Samples, folder: Path
) -> onnx.ModelProto:
    """The network as the peer quantizes it, from the folder if it is there.  PeerError.

    Made in a process of its own: peers log, patch and fail as they like.
    """
    peer = PEERS[name]
    digest = hashlib.sha256(model.read_bytes())
    source = Path(__file__).with_name(f"peer_{name}.py").read_bytes()
    digest.update(json.dumps([peer.version, peer.settings[setting]]).encode() + source)
    for sample in samples:
        for array in sample.values():
            digest.update(np.ascontiguousarray(array).tobytes())
    path = folder / name / f"{digest.hexdigest()}.onnx"
    failure = path.with_suffix(".failed")
    if failure.exists():
        raise PeerError(failure.read_text())
    if path.exists():
        return onnx.load(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    python = prepare(name, folder)
    with tempfile.TemporaryDirectory() as temporary:
        given, result = Path(temporary) / "samples.npz", Path(temporary) / "made.onnx"
        stacked = {key: np.stack([one[key] for one in samples]) for key in samples[0]}
        np.savez(given, **stacked)
        words = [name, json.dumps(peer.settings[setting]), model, given, result]
        command = [python, "-m", "bench.accuracy.peers", *map(str, words)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=60 * MINUTES,
                cwd=ROOT,
            )
            why = _last(done.stderr) if done.returncode else ""
            if done.returncode > 0:  # not by a signal, which may not come again
                failure.write_text(why)
        except subprocess.TimeoutExpired:
            why = f"took more than {MINUTES} minutes"
        if why:
            raise PeerError(why)
        write_atomic(path, result.read_bytes())
    return onnx.load(path)


def work(words: Sequence[str]) -> None:
    """In the peer's environment: what made() asks for."""
    name, setting, model, given, result = words
    module = importlib.import_module(f"bench.accuracy.peer_{name}")
    with np.load(given) as stacked:
        count = len(next(iter(stacked.values())))
        arrays = dict(stacked)
    samples = [{key: arrays[key][n] for key in arrays} for n in range(count)]
    found = module.quantized(Path(model), samples, **json.loads(setting))
    onnx.save(found, result)


def exact(model: onnx.ModelProto) -> onnx.ModelProto:
    """The network in floats, rounding and cutting off where the given one does.

    So it does not depend on the processor: without VNNI, sums saturate in integer
    kernels of onnxruntime, which is no fault of the peer.
    """
    net, nodes, constants = Net(model), [], {}
    for node in model.graph.node:
        if node.op_type not in LINEAR:
            nodes.append(node)
            continue
        x, y = node.input[0], node.output[0]
        given, scale, *zero = (net.constant(node, n) for n in range(len(node.input)))
        zero = zero[0] if zero else np.zeros(scale.shape, np.uint8)
        ends = np.iinfo(zero.dtype)
        if given is not None:
            dims = [1] * given.ndim
            if scale.size > 1:
                dims[attribute(node, "axis", 1)] = -1
            scale, offset = scale.reshape(dims), zero.reshape(dims).astype(np.int64)
            if node.op_type == "DequantizeLinear":
                value = ((given - offset) * scale).astype(np.float32)
            else:
                whole = np.rint(given / scale) + offset
                value = np.clip(whole, ends.min, ends.max).astype(zero.dtype)
            net.constants[y] = constants[y] = value
        else:  # between the two are whole numbers, zero being 0
            dims = (-1, 1, 1) if scale.size > 1 else ()  # by channel, in N C H W
            low, high = (end - zero.astype(np.float32) for end in (ends.min, ends.max))
            parts = {"scale": scale, "low": low, "high": high}
            constants |= {f"{y}/{n}": v.reshape(dims) for n, v in parts.items()}
            steps = [("Div", ["scale"]), ("Round", []), ("Max", ["low"])]
            steps += [("Min", ["high"])]
            if node.op_type == "DequantizeLinear":
                steps = [("Mul", ["scale"])]
            names = [x, *(f"{y}/{kind}" for kind, _ in steps[:-1]), y]
            for (kind, more), (a, b) in zip(steps, pairwise(names), strict=True):
                inputs = [a, *(f"{y}/{part}" for part in more)]
                nodes.append(helper.make_node(kind, inputs, [b]))
    tensors = (numpy_helper.from_array(array, n) for n, array in constants.items())
    model.graph.initializer.extend(tensors)
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(nodes)
    return net.finished()


if __name__ == "__main__":
    work(sys.argv[1:])
