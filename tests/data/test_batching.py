import itertools

import pytest
import torch

from langevin.data.batching import (
    RandomBatches,
    SuccessiveBatches,
    split_contiguous,
    split_streams,
    streams_of,
)
from langevin.errors import LangevinError


def test_targets_are_inputs_shifted_by_one():
    batches = SuccessiveBatches(streams_of(torch.arange(101), 4), 7)
    for index in range(len(batches)):
        inputs, targets = batches.batch(0, index)
        assert torch.equal(targets, inputs + 1)


def test_successive_batches_continue_and_cover_each_target_once():
    batches = SuccessiveBatches(streams_of(torch.arange(103), 4), 7)
    pieces = [batches.batch(0, index) for index in range(len(batches))]
    for (_, before), (after, _) in itertools.pairwise(pieces):
        assert torch.equal(before[:, -1], after[:, 0])
    targets = torch.cat([t for _, t in pieces], dim=1).flatten()
    assert sorted(targets.tolist()) == list(range(1, 101))  # 102 targets, 4 rows: two do not fit
    assert batches.tokens == len(targets) == 100


def test_random_windows_are_uniform_and_depend_on_epoch_and_index_only():
    batches = RandomBatches(torch.arange(60), rows=50, window=9, seed=3)
    starts = torch.cat([batches.batch(e, 0)[0][:, 0] for e in range(200)])
    counts = torch.bincount(starts, minlength=51)
    assert len(counts) == 51
    expected = len(starts) / 51
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    assert abs(chi2 - 50) / (2 * 50) ** 0.5 < 5
    assert torch.equal(batches.batch(4, 2)[0], batches.batch(4, 2)[0])
    assert not torch.equal(batches.batch(4, 2)[0], batches.batch(4, 3)[0])


def test_stream_split_is_along_time():
    parts = split_streams(torch.arange(1001), rows=10, window=5, parts=(10, 5, 5))
    assert [p.shape for p in parts.values()] == [(10, 51), (10, 26), (10, 26)]
    assert (
        parts["valid"][0, 0] == parts["train"][0, -1]
    )  # the last target of training is the first input after it
    assert parts["test"][3, 0] == 3 * 100 + 75


def test_contiguous_split_loses_nothing():
    parts = split_contiguous(torch.arange(100), (80, 10, 10))
    assert torch.equal(torch.cat(list(parts.values())), torch.arange(100))


def test_short_texts_are_refused():
    with pytest.raises(LangevinError, match="at least 5 tokens for 4 streams, got 3"):
        streams_of(torch.arange(3), 4)
    with pytest.raises(LangevinError, match="one window"):
        RandomBatches(torch.arange(5), 2, 9, 0)
    with pytest.raises(LangevinError, match="20 batches"):
        split_streams(torch.arange(100), 10, 5, (10, 5, 5))


def test_small_types_are_kept_and_widened_in_batches():
    sequence = torch.arange(103, dtype=torch.uint8)
    batches = SuccessiveBatches.of(sequence, 4, 7)
    assert batches.streams.dtype == batches.sequence.dtype == torch.uint8
    assert (
        batches.streams.untyped_storage().data_ptr() == sequence.untyped_storage().data_ptr()
    )  # no copy
    assert torch.equal(batches.sequence, sequence[:101])
    read = [*batches.batch(0, 0), batches.rest, *RandomBatches(sequence, 2, 5, 0).batch(0, 0)]
    assert {part.dtype for part in read} == {torch.int64}
    assert batches.rest.tolist() == [[100, 101, 102]]


@pytest.mark.parametrize("size", range(6, 40))
def test_streams_of_every_length(size):
    """Five rows whatever is left over, each beginning where the one before ended."""
    streams = streams_of(torch.arange(size), 5)
    length = (size - 1) // 5
    assert torch.equal(streams, torch.arange(5)[:, None] * length + torch.arange(length + 1))
