"""What makes features of pictures: ResNet-50 from a file of weights, or a network of transformers.

A model understands only the features of the network, and of the preparation, it was trained with:
both are known by checksums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from ..data.catalogue import DATASETS
from ..data.images import Picture, check_preprocess
from ..data.vectors import file_sha256
from ..errors import LangevinError
from ..files import no_file
from .image_network import ImageNetwork
from .resnet import FEATURES, load_resnet50

KNOWN = "resnet50"
WEIGHTS = (".npz", ".safetensors")
TOLD = ("sha256", "config_sha256", "preprocess", "width")
"""What must be the same of an extractor; its name may be another."""


class Network(Protocol):
    """Reads a picture in its own way, and makes features of some that were read."""

    def read(self, picture: Picture) -> Tensor: ...

    def features(self, pictures: list[Tensor]) -> Tensor: ...


@dataclass(frozen=True)
class Extractor:
    """A network that makes features of pictures, and by what it is known."""

    name: str
    sha256: str
    """Of the weights."""
    config_sha256: str | None
    preprocess: str
    """How it wants pictures: caffe, torchvision, or the checksum of its own settings."""
    width: int
    network: Network

    def facts(self) -> dict[str, Any]:
        """What a run remembers of its extractor, by which another is refused."""
        return {"name": self.name, **{key: getattr(self, key) for key in TOLD}}

    def features(self, pictures: Sequence[Picture]) -> Tensor:
        """[pictures, width]."""
        return self.network.features([self.network.read(picture) for picture in pictures])


def open_extractor(
    name: str | None = None, preprocess: str | None = None,
    known: Mapping[str, Any] | None = None,
) -> Extractor:
    """By a file of ResNet-50 weights, a folder or a name; None: the ResNet-50 among the data sets.

    Where a run remembers one, no other.
    """
    check_preprocess(preprocess or "caffe")
    if known and name is None and known["name"] != KNOWN:
        name = str(known["name"])
    if known and preprocess is None and known["preprocess"] in ("caffe", "torchvision"):
        preprocess = str(known["preprocess"])
    try:
        found = open_named(name, preprocess)
    except LangevinError as error:
        if known is None or name != known["name"] or name == KNOWN:
            raise
        raise LangevinError(
            f"expected the extractor {name} of this run (sha256 {known['sha256'][:12]}…), it "
            f"cannot be opened by that name; name its file or folder by --extractor"
        ) from error
    if known:
        expect_same(found, known)
    return found


def expect_same(found: Extractor, known: Mapping[str, Any]) -> None:
    """Refuse another extractor than the one that a run remembers."""
    for key in TOLD:
        value, wanted = getattr(found, key), known.get(key)
        if value != wanted:
            raise LangevinError(
                f"expected the extractor {known['name']} of this run ({key} {str(wanted)[:40]}), "
                f"{found.name} is another ({str(value)[:40]}); name the right one by --extractor"
            )


def open_named(name: str | None, preprocess: str | None) -> Extractor:
    if name in (None, KNOWN) or Path(str(name)).suffix in WEIGHTS:
        known = name in (None, KNOWN)
        path = resnet_weights() if known else Path(str(name))
        network = load_resnet50(path, preprocess=preprocess or "caffe")
        shown = KNOWN if known else path.name
        return Extractor(shown, file_sha256(path), None, network.preprocess, FEATURES, network)
    if preprocess is not None:
        raise LangevinError(f"expected ResNet-50 weights for --preprocess {preprocess}, got "
                            f"{name}, which says itself how it wants pictures; leave --preprocess out")
    own = ImageNetwork(str(name))
    shown = Path(str(name)).name if Path(str(name)).is_dir() else str(name)
    return Extractor(shown, own.sha256, own.config_sha256, own.preprocess, own.width, own)


def resnet_weights() -> Path:
    """The ResNet-50 among the data sets; refused with what is wanted and where."""
    known = DATASETS[KNOWN]
    weights = known.folder / known.files["weights"].name
    if no_file(weights):
        known.read("weights")
    return weights
