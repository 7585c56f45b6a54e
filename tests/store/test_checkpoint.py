"""A checkpoint is the one that was written, or it is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from langevin.errors import LangevinError
from langevin.store.checkpoint import (
    load_checkpoint,
    load_generated,
    load_progress,
    metadata_of,
    save_checkpoint,
    save_generated,
    tensors_sum,
)
from langevin.store.manifest import RunProgress

FIXTURES = Path(__file__).parents[1] / "fixtures"
PROGRESS = RunProgress(
    step=3, total=9, recorded=3, finished=False, stopped_early=False, clipped=0, clip_asked=3,
    averaged=1, groups=({"lr": 0.1, "prior_var": None},), seconds=2.0, num_data=40,
)
TENSORS = {
    "model.weight": torch.arange(6.0).reshape(2, 3), "model.half": torch.ones(3).bfloat16(),
    "sampler.0.steps": torch.tensor(7), "model.mask": torch.tensor([True, False]),
    "empty": torch.zeros(0, 4),
}


def refused_or_same(path: Path, tensors: dict[str, torch.Tensor]) -> bool:
    """Whether a changed checkpoint is refused; if not, it must say the same."""
    try:
        found, progress = load_checkpoint(path) or ({}, None)
    except LangevinError:
        return True
    assert tensors_sum(found) == tensors_sum(tensors)
    assert progress == PROGRESS
    return False


def test_it_comes_back(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    assert load_checkpoint(path) is None
    assert load_progress(path) is None
    save_checkpoint(path, TENSORS, PROGRESS)
    assert not refused_or_same(path, TENSORS)
    assert load_progress(path).step == 3


def test_every_single_bit_is_noticed(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, TENSORS, PROGRESS)
    raw = path.read_bytes()
    passed = []
    for bit in range(0, 8 * len(raw), 3):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        if not refused_or_same(path, TENSORS):
            passed.append(bit // 8)
    header = raw[8 : 8 + int.from_bytes(raw[:8], "little")]
    spaces = len(header) - len(header.rstrip())  # at the end of the header, where they say nothing
    assert len(passed) <= 3 * spaces


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, 100, -1])
def test_what_is_cut_off_is_refused(tmp_path, cut):
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, TENSORS, PROGRESS)
    path.write_bytes(path.read_bytes()[:cut])
    for load in (load_checkpoint, load_progress):
        if cut != -1 or load is load_checkpoint:
            with pytest.raises(LangevinError, match="delete it to start this run again"):
                load(path)


@pytest.mark.parametrize("metadata", [
    None, {}, {"progress": "{"}, {"progress": "[]"}, {"other": "x"},
    {"progress": '{"format": 2, "step": 1}'},
])
def test_one_that_says_nothing_of_the_run_is_refused(tmp_path, metadata):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(safetensors.torch.save(TENSORS, metadata=metadata))
    for load in (load_checkpoint, load_progress):
        with pytest.raises(LangevinError, match=r"checkpoint\.safetensors"):
            load(path)


def test_a_newer_format_is_refused_by_its_number(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    text = json.dumps({"format": 4, "state": "other"})
    path.write_bytes(safetensors.torch.save(TENSORS, metadata={"progress": text}))
    with pytest.raises(LangevinError, match=r"format 3 or older in .*, got format 4"):
        load_progress(path)


@pytest.mark.parametrize("number", [{"a": 1}, None, "3", 1.5])
def test_a_format_that_is_no_number_is_refused(tmp_path, number):
    path = tmp_path / "checkpoint.safetensors"
    metadata = metadata_of(TENSORS, json.dumps({"format": number, "history": []}))
    path.write_bytes(safetensors.torch.save(TENSORS, metadata=metadata))
    with pytest.raises(LangevinError, match="expected format in"):
        load_progress(path)


@pytest.mark.parametrize("folder", ["bytes", "words", "questions", "captions", "student"])
def test_old_ones_have_no_checksum_and_open(folder, tmp_path):
    path = shutil.copy(FIXTURES / folder / "checkpoint.safetensors", tmp_path)
    tensors, progress = load_checkpoint(Path(path))
    assert progress.finished
    save_checkpoint(Path(path), tensors, progress)
    again, known = load_checkpoint(Path(path))
    assert tensors_sum(again) == tensors_sum(tensors)
    assert known.history == progress.history


def test_what_a_teacher_wrote_is_what_it_wrote(tmp_path):
    path = tmp_path / "generated.safetensors"
    tokens = torch.arange(12, dtype=torch.int32).reshape(3, 4)
    save_generated(path, tokens)
    assert torch.equal(load_generated(path), tokens)
    raw = path.read_bytes()
    for byte in range(len(raw) - 48, len(raw)):
        path.write_bytes(raw[:byte] + bytes([raw[byte] ^ 4]) + raw[byte + 1 :])
        with pytest.raises(LangevinError, match="changed after it was written"):
            load_generated(path)
    path.write_bytes(safetensors.torch.save({"tokens": tokens}))  # as older versions did
    assert torch.equal(load_generated(path), tokens)
    path.write_bytes(raw[:-1])
    with pytest.raises(LangevinError, match="cannot be read"):
        load_generated(path)


def test_what_is_read_stands_in_memory_as_new_tensors_do(tmp_path):
    """Products of matrices round by the alignment of their operands, and runs go on to the bit."""
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, {f"carry.{n}.0": torch.ones(n) for n in range(1, 40, 2)}, PROGRESS)
    loaded = load_checkpoint(path)
    assert loaded is not None
    assert {tensor.data_ptr() % 64 for tensor in loaded[0].values()} == {0}
