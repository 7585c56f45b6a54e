"""ResNet-50 up to its global average pool, from weights with torchvision's names.

Two lineages share these names and differ in three things, which the weights do not tell:

| | pictures | stride 2 of layers 2-4 on | batch-norm ε |
|---|---|---|---|
| "caffe" (original, Keras) | blue-green-red minus means, squashed | the first 1×1 | 1.001·10⁻⁵ |
| "torchvision" | ImageNet scaling, middle of the picture | the 3×3 | 10⁻⁵ |
"""

from __future__ import annotations

import difflib
import zipfile
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from ..data.images import Picture, check_preprocess, read_image
from ..errors import LangevinError
from ..files import expect_file

FEATURES = 2048
LINEAGES = {"caffe": ("first", 1.001e-5), "torchvision": ("middle", 1e-5)}


class Bottleneck(nn.Module):
    """relu(x + conv1×1(relu(conv3×3(relu(conv1×1(x)))))), each convolution with batch norm."""

    def __init__(self, inputs: int, width: int, stride: int, stride_on: str, eps: float) -> None:
        super().__init__()
        first, middle = (stride, 1) if stride_on == "first" else (1, stride)
        self.conv1 = nn.Conv2d(inputs, width, 1, first, bias=False)
        self.bn1 = nn.BatchNorm2d(width, eps)
        self.conv2 = nn.Conv2d(width, width, 3, middle, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, eps)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width, eps)
        self.downsample = nn.Sequential()
        if stride > 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width, eps)
            )

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.bn1(self.conv1(x)).relu_()
        y = self.bn2(self.conv2(y)).relu_()
        return torch.relu(self.bn3(self.conv3(y)) + self.downsample(x))


class ResNet50(nn.Module):
    """Pictures [n, 3, 224, 224] → features [n, 2048], all ≥ 0.

    `preprocess` says how its pictures are to be read.
    """

    def __init__(self, *, preprocess: str = "caffe") -> None:
        super().__init__()
        check_preprocess(preprocess)
        self.preprocess = preprocess
        stride_on, eps = LINEAGES[preprocess]
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64, eps)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        inputs = 64
        for number, blocks in enumerate((3, 4, 6, 3)):
            width, stride = 64 * 2**number, 1 if number == 0 else 2
            layer = [Bottleneck(inputs, width, stride, stride_on, eps)]
            layer += [Bottleneck(4 * width, width, 1, stride_on, eps) for _ in range(blocks - 1)]
            setattr(self, f"layer{number + 1}", nn.Sequential(*layer))
            inputs = 4 * width

    def forward(self, pictures: Tensor) -> Tensor:
        x: Tensor = self.maxpool(self.bn1(self.conv1(pictures)).relu_())
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((2, 3))

    def read(self, picture: Picture) -> Tensor:
        return read_image(picture, preprocess=self.preprocess)

    @torch.no_grad()
    def features(self, pictures: list[Tensor]) -> Tensor:
        """Of pictures that were read, on the processor."""
        stacked = torch.stack(pictures).to(self.conv1.weight.device)
        features: Tensor = self(stacked.contiguous(memory_format=torch.channels_last))
        return features.cpu()


def load_resnet50(path: Path, *, preprocess: str = "caffe") -> ResNet50:
    """The network with the weights of an `.npz` or `.safetensors` file, in evaluation mode,
    float32.

    `preprocess` names the lineage. A classifier head is not read.
    """
    with torch.device("meta"):  # no memory and no random numbers for weights that are replaced
        network = ResNet50(preprocess=preprocess)
    found = _read(Path(path))
    weights = {name: tensor for name, tensor in found.items() if not name.startswith("fc.")}
    wanted = network.state_dict()
    for name in wanted:
        if name.endswith("num_batches_tracked"):  # counts training steps; many files leave it out
            weights[name] = torch.tensor(0)
    _check(wanted, weights, Path(path))
    network.load_state_dict({name: weights[name] for name in wanted}, assign=True)
    for weight in network.parameters():
        if weight.dim() == 4:  # the order in which convolutions are fastest
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    return network.eval().requires_grad_(False)


def _read(path: Path) -> dict[str, Tensor]:
    if path.suffix not in (".npz", ".safetensors"):
        raise LangevinError(
            f"expected ResNet-50 weights as .npz or .safetensors, got {path}; "
            "write a torch state dict with safetensors.torch.save_file"
        )
    expect_file(path, "ResNet-50 weights with torchvision's names in", "name a file of weights")
    try:
        if path.suffix == ".safetensors":
            return {name: tensor.float() for name, tensor in load_file(path).items()}
        with path.open("rb") as raw:  # numpy leaves a damaged file open
            file = np.load(raw, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it holds one array without a name")
            return {name: torch.from_numpy(file[name].astype(np.float32)) for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, SafetensorError) as error:
        raise LangevinError(
            f"cannot read the weights in {path}: {error}; fetch the file again"
        ) from error


def _check(wanted: dict[str, Tensor], weights: dict[str, Tensor], path: Path) -> None:
    """Every weight there, in the right shape, a number.

    Unknown names are told with the nearest known one.
    """
    missing = [name for name in wanted if name not in weights]
    unknown = [name for name in weights if name not in wanted]
    if missing or unknown:
        near = difflib.get_close_matches(unknown[0], wanted, 1) if unknown else []
        parts = [f"{len(missing)} missing (first {missing[0]})"] if missing else []
        if unknown:
            hint = f", near {near[0]})" if near else ")"
            parts += [f"{len(unknown)} unknown (first {unknown[0]}{hint}"]
        raise LangevinError(f"expected the weights of torchvision's ResNet-50 in {path}, got "
                            f"{' and '.join(parts)}")
    for name, like in wanted.items():
        if weights[name].shape != like.shape or not weights[name].isfinite().all():
            what = "NaN or infinity in it"
            if weights[name].shape != like.shape:
                what = f"{tuple(weights[name].shape)}"
            raise LangevinError(f"expected {name} of shape {tuple(like.shape)} in {path}, got "
                                f"{what}")
