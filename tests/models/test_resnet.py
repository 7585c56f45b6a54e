"""The feature extractor against a plain rewriting of its equations, and against stored features of
real pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from langevin.errors import LangevinError
from langevin.models.resnet import ResNet50, load_resnet50


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    """Random weights with lively batch-norm statistics, representable in half precision."""
    torch.manual_seed(0)
    state = ResNet50().state_dict()
    generator = torch.Generator().manual_seed(1)
    for name, tensor in state.items():
        if "running_var" in name:
            tensor.uniform_(0.5, 2, generator=generator)
        elif ("bn" in name or "downsample.1" in name) and tensor.is_floating_point():
            tensor.add_(0.2 * torch.randn(tensor.shape, generator=generator))
    return {name: tensor.half().float() for name, tensor in state.items() if "num_batches" not in name}


@pytest.fixture(scope="module")
def npz(weights, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("resnet") / "weights.npz"
    np.savez(path, **{name: tensor.half().numpy() for name, tensor in weights.items()})
    return path


def plain(weights: dict[str, Tensor], x: Tensor, stride_on: str, eps: float) -> Tensor:
    """The network written out once more, with functions."""

    def unit(x: Tensor, conv: str, norm: str, stride: int = 1, padding: int = 0) -> Tensor:
        x = functional.conv2d(x, weights[f"{conv}.weight"], stride=stride, padding=padding)
        mean, var, scale, shift = (
            weights[f"{norm}.{n}"][:, None, None] for n in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + eps).sqrt() * scale + shift

    x = functional.max_pool2d(unit(x, "conv1", "bn1", 2, 3).relu(), 3, 2, 1)
    for layer, blocks in ((1, 3), (2, 4), (3, 6), (4, 3)):
        for block in range(blocks):
            at, stride = f"layer{layer}.{block}", 2 if layer > 1 and block == 0 else 1
            first, middle = (stride, 1) if stride_on == "first" else (1, stride)
            y = unit(x, f"{at}.conv1", f"{at}.bn1", first).relu()
            y = unit(y, f"{at}.conv2", f"{at}.bn2", middle, 1).relu()
            y = unit(y, f"{at}.conv3", f"{at}.bn3")
            x = (y + (unit(x, f"{at}.downsample.0", f"{at}.downsample.1", stride) if block == 0 else x)).relu()
    return x.mean((2, 3))


@pytest.mark.parametrize(
    ("options", "stride_on", "eps"),
    [
        ({}, "first", 1.001e-5), ({"preprocess": "torchvision"}, "middle", 1e-5),
    ],
)
def test_the_network_is_its_equations(weights, npz, options, stride_on, eps):
    network = load_resnet50(npz, **options)
    assert not network.training
    assert not any(p.requires_grad for p in network.parameters())
    pictures = torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(2))
    got, expected = network(pictures), plain(weights, pictures, stride_on, eps)
    assert got.shape == (2, 2048)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
    other = plain(weights, pictures, "middle" if stride_on == "first" else "first", eps)
    assert (got - other).norm() > 0.01 * got.norm()


def test_safetensors_with_a_head_are_read_too(weights, npz, tmp_path):
    extra = {"fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}
    extra["bn1.num_batches_tracked"] = torch.tensor(5)
    save_file({name: tensor.half() for name, tensor in weights.items()} | extra, tmp_path / "w.safetensors")
    one, two = load_resnet50(npz).state_dict(), load_resnet50(tmp_path / "w.safetensors").state_dict()
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_weights_that_do_not_fit_are_refused(weights, tmp_path):
    def refused(words: str, **changes: np.ndarray | None) -> None:
        arrays = {name: tensor.half().numpy() for name, tensor in weights.items()} | changes
        np.savez(tmp_path / "w.npz", **{name: array for name, array in arrays.items() if array is not None})
        with pytest.raises(LangevinError, match=words):
            load_resnet50(tmp_path / "w.npz")

    refused(r"1 missing \(first layer2.0.conv1.weight\)", **{"layer2.0.conv1.weight": None})
    refused(
        r"1 missing \(first bn1.bias\) and 1 unknown \(first bn1.biass, near bn1.bias\)",
        **{"bn1.bias": None, "bn1.biass": np.zeros(64)},
    )
    refused(r"bn1.bias of shape \(64,\).*got \(63,\)", **{"bn1.bias": np.zeros(63)})
    refused("NaN or infinity", **{"bn1.bias": np.full(64, np.nan)})


def test_files_that_are_no_weights_are_refused(tmp_path):
    for name, raw, words in [
        ("w.npz", b"PK\x03\x04 no", "cannot read"), ("w.safetensors", b"12345678{}", "cannot read"),
        ("w.pth", b"", "safetensors.torch.save_file"), ("e.npz", b"", "cannot read"), ("t.npz", b"text", "cannot read"),
    ]:
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(LangevinError, match=words):
            load_resnet50(tmp_path / name)
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(LangevinError, match="one array without a name"):
        load_resnet50(tmp_path / "one.npz")
    for name, words in {"nowhere": "which is not there", "x" * 300: "File name too long"}.items():
        with pytest.raises(LangevinError, match=words):
            load_resnet50(tmp_path / f"{name}.npz")
    with pytest.raises(LangevinError, match=r'^expected preprocess .* got "keras"; '):
        load_resnet50(tmp_path / "w.npz", preprocess="keras")


@pytest.mark.data
def test_real_pictures_give_the_stored_features(real_data):
    """48 pictures. Stored: float16 features of the float32 weights; here the weights are float16,
    worth 0.1 %."""
    pytest.importorskip("PIL")
    network = load_resnet50(real_data / "resnet50" / "resnet50_v1_f16.npz")
    folder = real_data / "flickr8k"
    paths = sorted((folder / "images").iterdir())
    row = {name: number for number, name in enumerate((folder / "resnet50_names.txt").read_text().split())}
    stored = np.load(folder / "resnet50_pool5_f16.npy", mmap_mode="r")
    expected = torch.from_numpy(stored[[row[path.name] for path in paths]].astype(np.float32))
    got = network.features([network.read(path) for path in paths])
    assert len(paths) == 48
    assert torch.cosine_similarity(got, expected).min() > 0.99999
    assert ((got - expected).norm(dim=1) / expected.norm(dim=1)).max() < 0.003
