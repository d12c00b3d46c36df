# SPDX-License-Identifier: Apache-2.0
"""What anybody would write to run a network on a folder of images, and nothing else."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

model, folder, settings = sys.argv[1:]
options = json.loads(settings)
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
entry = session.get_inputs()[0]
height, width = entry.shape[2:]
for path in sorted(Path(folder).iterdir())[: options["limit"]]:
    image = Image.open(path).convert("RGB")
    left, top = (image.width - width) // 2, (image.height - height) // 2
    pixels = np.asarray(image.crop((left, top, left + width, top + height)))
    if options["color"] == "bgr":
        pixels = pixels[:, :, ::-1]
    pixels = (pixels.astype(np.float32) - np.float32(options["mean"])).transpose(
        2, 0, 1
    )
    session.run(None, {entry.name: np.ascontiguousarray(pixels[np.newaxis])})
