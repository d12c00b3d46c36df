# SPDX-License-Identifier: Apache-2.0
"""One network of a torch package, weights random, exported to ONNX.

python -m bench.networks.export_torch PACKAGE MODEL EXPORTER SAMPLES.npz FILE.onnx,
in an environment that has torch and need not have neon8. Batch normalisations get the
statistics of the samples and scales between 0.5 and 1.5, as those of weights.py do; the
rest is as the package initializes it, from seed 0.
"""

import importlib
import sys
from types import ModuleType

import numpy as np
import torch
from torch import nn

SCRIPTED_OPSET = 17
LOWEST, HIGHEST = 0.5, 1.5
"""Scales of batch normalisations."""


class Chosen(nn.Module):
    """A network that gives some of its outputs, in this order."""

    def __init__(self, inner: nn.Module, *names: str) -> None:
        """names: keys of the outputs."""
        super().__init__()
        self.inner = inner
        self.names = names

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = self.inner(x)
        return tuple(found[name] for name in self.names)


def of_timm(package: ModuleType, model: str) -> nn.Module:
    return package.create_model(model, pretrained=False)


def of_torchvision(package: ModuleType, model: str) -> nn.Module:
    """A network by its name there; of a segmentation, the classes' scores."""
    if not model.startswith("lraspp"):
        return package.models.get_model(model, weights=None)
    options = {"weights": None, "weights_backbone": None}
    return Chosen(package.models.get_model(model, **options), "out")


def of_ultralytics(package: ModuleType, model: str) -> nn.Module:
    """A detector, its head set as the package's own export sets it."""
    tasks = importlib.import_module(f"{package.__name__}.nn.tasks")
    network = tasks.DetectionModel(f"{model}.yaml", verbose=False)
    for part in network.modules():
        if hasattr(part, "export"):
            part.export, part.format, part.dynamic = True, "onnx", False
    return network


WHISPER = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6}
DINO = {"hidden_size": 384, "num_attention_heads": 6, "image_size": 252}
DEPTH = {"neck_hidden_sizes": [48, 96, 192, 384], "fusion_hidden_size": 64}
RESNET = {"hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2]}
BERT = {"hidden_size": 312, "num_hidden_layers": 4, "intermediate_size": 1200}


def of_transformers(package: ModuleType, model: str) -> nn.Module:
    """A network of the published dimensions."""
    if model == "segformer_b0":
        config = package.SegformerConfig(num_labels=150)
        return Chosen(package.SegformerForSemanticSegmentation(config), "logits")
    if model == "tinybert":
        config = package.BertConfig(**BERT, num_attention_heads=12)
        return Chosen(package.BertModel(config), "last_hidden_state")
    if model == "whisper_tiny":
        config = package.WhisperConfig(**WHISPER, encoder_ffn_dim=1536)
        return Chosen(package.WhisperModel(config).encoder, "last_hidden_state")
    if model == "depth_anything":
        states = {"out_indices": [3, 6, 9, 12], "reshape_hidden_states": False}
        backbone = package.Dinov2Config(**DINO, **states)
        options = {"backbone_config": backbone, "reassemble_hidden_size": 384}
        config = package.DepthAnythingConfig(**options, **DEPTH)
        depth = package.DepthAnythingForDepthEstimation(config)
        return Chosen(depth, "predicted_depth")
    assert model == "rtdetr_r18"
    stages = {"layer_type": "basic", "out_features": ["stage2", "stage3", "stage4"]}
    config = package.RTDetrConfig(
        backbone_config=package.RTDetrResNetConfig(**RESNET, **stages),
        encoder_in_channels=[128, 256, 512],
        hidden_expansion=0.5,
        decoder_layers=3,
        num_labels=80,
    )
    return Chosen(package.RTDetrForObjectDetection(config), "logits", "pred_boxes")


PACKAGES = {
    "timm": of_timm,
    "torchvision": of_torchvision,
    "transformers": of_transformers,
    "ultralytics": of_ultralytics,
}


def settle(network: nn.Module, samples: torch.Tensor) -> None:
    """Give batch normalisations the statistics of their inputs."""
    norms = [
        part
        for part in network.modules()
        if isinstance(part, nn.modules.batchnorm._BatchNorm)
    ]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
        if norm.weight is not None:
            nn.init.uniform_(norm.weight, LOWEST, HIGHEST)
    if norms:
        network(samples)
    network.eval()


def main() -> None:
    package, model, exporter, samples, file = sys.argv[1:]
    torch.manual_seed(0)
    network = PACKAGES[package](importlib.import_module(package), model).eval()
    known = torch.from_numpy(np.load(samples)["x"])
    options = {"dynamo": False, "opset_version": SCRIPTED_OPSET}
    if exporter == "dynamo":
        options = {"dynamo": True, "external_data": False, "verbose": False}
    with torch.no_grad():
        settle(network, known)
        torch.onnx.export(network, (known[:1],), file, input_names=["x"], **options)


if __name__ == "__main__":
    main()
