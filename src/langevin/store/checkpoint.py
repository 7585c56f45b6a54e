"""Tensors with a record in one file, under checksums: checkpoints, what a teacher wrote, and what
samples say of validation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..errors import LangevinError
from ..files import IRREGULAR, no_file, write_atomic
from .manifest import RunProgress
from .records import fit, json_object

PROGRESS, TENSORS, SUM = "progress", "tensors_sha256", "sha256"
"""Keys beside the tensors: the record, the checksum of the tensors, and that of both."""
REMEDY = "delete it to start this run again from its recipe"


def save_checkpoint(path: Path, tensors: dict[str, Tensor], progress: RunProgress) -> None:
    """All that the rest of a run depends on, as one file, whole or not at all."""
    text = json.dumps(progress.to_dict())
    write_atomic(path, safetensors.torch.save(tensors, metadata=metadata_of(tensors, text)))


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], RunProgress] | None:
    """Tensors and progress, compared with their checksums; None before the first."""
    if not is_written(path):
        return None
    try:  # one handle: the file may be replaced by a newer one at any moment
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            progress = progress_of(metadata, path)
            # Copies stand in memory as new tensors do. Views of the file may not, and a product of
            # matrices rounds by how its operands are aligned: a run would not resume to its bits.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise unreadable(path, error) from None
    if TENSORS in metadata and metadata[TENSORS] != tensors_sum(tensors):
        raise changed(path)
    return tensors, progress


def load_progress(path: Path) -> RunProgress | None:
    """How far a run is, without reading the tensors."""
    if not is_written(path):
        return None
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise unreadable(path, error) from None
    return progress_of(metadata, path)


def save_generated(path: Path, tokens: Tensor) -> None:
    """The text that a teacher wrote, as [rows, time]."""
    tensors = {"tokens": tokens}
    write_atomic(path, safetensors.torch.save(tensors, metadata=metadata_of(tensors, "{}")))


def load_generated(path: Path) -> Tensor:
    """The same, read; text of older versions has no checksum."""
    is_written(path)
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tokens: Tensor = file.get_tensor("tokens")
    except (OSError, SafetensorError) as error:
        raise LangevinError(f"the text {path} cannot be read ({error}); delete it and the "
                            f"checkpoint, and it is written again") from None
    if metadata and metadata != metadata_of({"tokens": tokens}, "{}"):
        raise LangevinError(f"{path} was changed after it was written (its checksum differs); "
                            f"delete it and the checkpoint, and it is written again")
    return tokens


def is_written(path: Path) -> bool:
    """Refuses a pipe, which a reader would wait for."""
    if no_file(path) == IRREGULAR:
        raise unreadable(path, f"it is {IRREGULAR}")
    return path.exists()


def save_log_probs(path: Path, log_probs: Tensor) -> None:
    """What a sample says of validation."""
    tensors = {"log_probs": log_probs.contiguous()}
    write_atomic(path, safetensors.torch.save(tensors, metadata=metadata_of(tensors, "{}")))


def load_log_probs(path: Path) -> Tensor | None:
    """The same, read; None where it was not kept, or cannot be trusted."""
    if not is_written(path):
        return None
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            log_probs: Tensor = file.get_tensor("log_probs")
    except (OSError, SafetensorError):
        return None
    return log_probs if metadata == metadata_of({"log_probs": log_probs}, "{}") else None


def metadata_of(tensors: Mapping[str, Tensor], text: str) -> dict[str, str]:
    digest = tensors_sum(tensors)
    return {PROGRESS: text, TENSORS: digest, SUM: hashlib.sha256((digest + text).encode()).hexdigest()}


def progress_of(metadata: dict[str, str], path: Path) -> RunProgress:
    """The record of a checkpoint. Only those of older formats have no checksums."""
    if PROGRESS not in metadata or not metadata.keys() <= {PROGRESS, TENSORS, SUM}:
        found = ", ".join(sorted(metadata)) or "nothing"
        raise unreadable(path, f"it holds {found} beside the tensors")
    text = metadata[PROGRESS]
    number = format_of(text)
    if number > RunProgress.NEWEST:
        raise LangevinError(f"expected format {RunProgress.NEWEST} or older in {path}, got format "
                            f"{number}; open it by the newer langevin that wrote it")
    if number > 1 or len(metadata) > 1:
        expected = hashlib.sha256((metadata.get(TENSORS, "") + text).encode()).hexdigest()
        if TENSORS not in metadata or metadata.get(SUM) != expected:
            raise changed(path)
    content = RunProgress.upgrade(json_object(text.encode(), path, REMEDY))
    return fit(json.dumps(content).encode(), path, RunProgress, REMEDY)


def format_of(text: str) -> int:
    """As it says; 1 where it says none, or nothing that can be read."""
    try:
        found = json.loads(text)["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return 1
    return found if type(found) is int else 1


def tensors_sum(tensors: Mapping[str, Tensor]) -> str:
    """Over names, types, shapes and bits, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def unreadable(path: Path, why: object) -> LangevinError:
    return LangevinError(f"the checkpoint {path} cannot be read ({why}); {REMEDY}")


def changed(path: Path) -> LangevinError:
    return LangevinError(f"the checkpoint {path} was changed after it was written (its checksum "
                         f"differs); bring it back from a copy, or {REMEDY}")


def split_prefix(tensors: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """'model.a.b' → rooms['model']['a.b']."""
    rooms: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        room, _, rest = name.partition(".")
        rooms.setdefault(room, {})[rest] = tensor
    return rooms
