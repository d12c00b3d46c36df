# SPDX-License-Identifier: Apache-2.0
"""Networks of PyTorch and Keras, calibrated as they are."""

import sys
import types

import numpy as np
import onnx
import pytest

import neon8
from neon8.errors import DataError, GraphError, SettingsError, SetupError
from neon8.frameworks import framework_of

torch = pytest.importorskip("torch", reason="torch is not installed")
nn = torch.nn
utils = torch.utils.data

IMAGES = torch.randn(10, 3, 8, 8, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    """With what differs in training: dropout and normalization."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.drop, self.last = nn.Dropout(), nn.Linear(144, 6)

    def forward(self, image):
        x = torch.relu(self.norm(self.conv(image)))
        return self.last(self.drop(x.flatten(1)))


class Two(nn.Module):
    """Two inputs, and outputs by name."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, left, *, right, swap=False):
        left, right = (right, left) if swap else (left, right)
        both = self.left(left) + self.right(right)
        return {"both": both, "left": torch.relu(self.left(left))}


@pytest.fixture
def net():
    torch.manual_seed(0)
    made = Net().train()
    made.norm.eval()  # frozen, as when fine-tuning
    return made


def loader(*tensors, batch=4):
    return utils.DataLoader(utils.TensorDataset(*tensors), batch_size=batch)


@pytest.mark.parametrize(
    "data",
    [
        IMAGES,
        IMAGES.numpy(),
        [IMAGES[:4], IMAGES[4:]],
        loader(IMAGES),
        loader(IMAGES, torch.zeros(10, dtype=torch.int64)),
        iter(loader(IMAGES, torch.zeros(10, dtype=torch.int64), batch=3)),
        [{"image": IMAGES, "label": torch.zeros(10)}],
    ],
    ids=["tensor", "array", "list", "loader", "labels", "once", "dict"],
)
def test_a_module_is_calibrated_from_what_loaders_give(net, data, tmp_path):
    before = {name: each.clone() for name, each in net.state_dict().items()}
    path = tmp_path / "net.onnx"
    table = neon8.calibrate_model(net, data, onnx=path)
    assert table.samples == 10
    assert table == neon8.calibrate_model(path, [IMAGES.numpy()])
    # Nothing about the module has changed.
    modes = {name: each.training for name, each in net.named_modules()}
    assert modes == {name: name != "norm" for name in modes}
    after = net.state_dict()
    assert all(torch.equal(after[name], each) for name, each in before.items())
    assert all(each.requires_grad for each in net.parameters())


def test_from_a_module_to_a_model_that_runs(net, tmp_path):
    path, n8 = tmp_path / "net.onnx", tmp_path / "net.n8"
    table = neon8.calibrate_model(net, loader(IMAGES), onnx=path)
    neon8.compile_model(path, table, output=n8)
    with neon8.Model.open(n8) as model, model.session() as session:
        got = session.run({"image": IMAGES[:1].numpy()})["output"]
    wanted = net.eval()(IMAGES[:1]).detach().numpy()
    assert np.abs(got - wanted).max() < 0.05 * np.abs(wanted).max()


def test_several_inputs_and_outputs_have_their_names(tmp_path):
    path = tmp_path / "two.onnx"
    rows = torch.randn(6, 8)
    batches = [{"left": rows, "right": -rows, "label": torch.zeros(6)}]
    neon8.calibrate_model(Two(), batches, onnx=path)
    graph = onnx.load(path).graph
    assert [each.name for each in graph.input] == ["left", "right"]
    assert [each.name for each in graph.output] == ["both", "left_output"]


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        ([], "there is no batch"),
        ("x.npz", "not a path"),
        ([{"picture": IMAGES}], "a batch has picture"),
        ([3.0], "none of them an array"),
    ],
)
def test_what_is_no_batch(net, data, cause, tmp_path):
    with pytest.raises(DataError, match=cause):
        neon8.calibrate_model(net, data, onnx=tmp_path / "net.onnx")
    assert net.training


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_layers_that_pytorch_has_as_one(tmp_path):
    """In evaluation mode an encoder's layer is one operator, which ONNX lacks."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    path = tmp_path / "net.onnx"
    neon8.calibrate_model(layer, [torch.randn(6, 5, 8)], onnx=path)
    assert "MatMul" in {node.op_type for node in onnx.load(path).graph.node}
    assert torch.backends.mha.get_fastpath_enabled()


def test_what_pytorch_cannot_write(tmp_path):
    class Inverse(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x)

    with pytest.raises(GraphError, match=r"^Inverse: PyTorch cannot write it[^\n]*$"):
        neon8.calibrate_model(Inverse(), torch.eye(3)[None], onnx=tmp_path / "x.onnx")


def test_inputs_without_names(tmp_path):
    class Anything(nn.Module):
        def forward(self, *given):
            return given[0]

    with pytest.raises(DataError, match=r"Anything: forward\(\) names no inputs"):
        neon8.calibrate_model(Anything(), IMAGES, onnx=tmp_path / "net.onnx")


def test_the_file_must_have_a_name(net, tmp_path):
    with pytest.raises(SettingsError, match="give onnx="):
        neon8.calibrate_model(net, IMAGES)
    with pytest.raises(SettingsError, match="is an ONNX file already"):
        neon8.calibrate_model(tmp_path / "a.onnx", IMAGES, onnx=tmp_path / "b.onnx")


class Keras:
    """In the manner of keras.Model, as far as it is asked."""

    __module__ = "keras.src.models"
    input_names = ("image",)


def test_keras_wants_its_exporter(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert framework_of(Keras()) == "keras"
    with pytest.raises(SetupError, match="pip install tf2onnx"):
        neon8.calibrate_model(Keras(), IMAGES.numpy(), onnx=tmp_path / "k.onnx")


def test_keras_through_a_stand_in_of_its_exporter(net, monkeypatch, tmp_path):
    """tf2onnx writes what it is told the shape of: one sample of each input."""
    path, asked = tmp_path / "k.onnx", []
    neon8.calibrate_model(net, IMAGES, onnx=tmp_path / "net.onnx")

    def from_keras(model, signature, *, opset, output_path):
        asked.append((model, signature, opset, output_path))
        (tmp_path / "net.onnx").rename(output_path)

    spec = types.SimpleNamespace(TensorSpec=lambda *given, name: (name, *given))
    convert = types.SimpleNamespace(from_keras=from_keras)
    monkeypatch.setitem(sys.modules, "tensorflow", spec)
    monkeypatch.setitem(sys.modules, "tf2onnx", types.SimpleNamespace(convert=convert))
    model = Keras()
    table = neon8.calibrate_model(model, [(IMAGES.numpy(), None)], onnx=path)
    assert table.samples == 10
    signature = [("image", (1, 3, 8, 8), np.dtype(np.float32))]
    assert asked == [(model, signature, 17, str(path))]
