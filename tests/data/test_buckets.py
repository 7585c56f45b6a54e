"""Batches hold every sentence once an epoch, pad little, depend on (seed, epoch, index) alone."""

import pytest
import torch

from langevin.data.buckets import (
    PADDING,
    ROWS,
    Buckets,
    by_length,
    in_length_order,
    lengths_of,
    pad,
)
from langevin.data.sentences import KNOWN, read_corpus_of_sentences


def sentences(count=1003, seed=0):
    lengths = torch.randint(0, 40, (count,), generator=torch.Generator().manual_seed(seed))
    return [torch.full((int(length),), number % 90 + 1) for number, length in enumerate(lengths)]


def test_every_item_once_an_epoch_in_batches_of_equal_size():
    lengths = lengths_of(sentences())
    buckets = Buckets(lengths, 50, seed=3)
    for epoch in range(3):
        members = [buckets.batch(epoch, index) for index in range(len(buckets))]
        assert sorted(torch.cat(members).tolist()) == list(range(1003))
        assert {len(batch) for batch in members} == {47, 48}
        assert buckets.padding(epoch) < 0.1
        means = [float(lengths[batch].float().mean()) for batch in members]
        assert means != sorted(means)  # short ones do not come first


def test_batches_are_a_function_of_seed_epoch_and_index():
    lengths = lengths_of(sentences())
    one, other = Buckets(lengths, 50, seed=3), Buckets(lengths, 50, seed=3)
    later = other.batch(5, 7)  # straight to it, as after a resumption
    one.batch(0, 0)
    members = one.batch(5, 7)
    assert members.equal(later)
    assert not members.equal(one.batch(6, 7))
    assert not members.equal(Buckets(lengths, 50, seed=4).batch(5, 7))


def test_padding_fills_the_end_of_rows():
    tokens, lengths = pad(
        [torch.tensor([5, 6]), torch.tensor([], dtype=torch.long), torch.tensor([7])]
    )
    assert tokens.tolist() == [[5, 6], [PADDING, PADDING], [7, PADDING]]
    assert lengths.tolist() == [2, 0, 1]
    assert pad([torch.tensor([], dtype=torch.long)])[0].shape == (1, 1)


def test_evaluation_batches_hold_everything_within_bounds():
    rows = [*sentences(), torch.ones(5000, dtype=torch.long)]
    batches = by_length(rows, 64, 1000)
    assert sorted(number for batch in batches for number in batch) == list(range(len(rows)))
    for batch in batches:
        longest = max(len(rows[number]) for number in batch)
        assert len(batch) <= 64
        assert len(batch) * longest <= 1000 or len(batch) == 1


@pytest.mark.parametrize("dim", [0, 1])
def test_what_was_made_of_batches_by_length_is_put_back_in_order(dim):
    rows = sentences(600)

    def first_and_length(tokens, lengths):
        assert len(tokens) <= ROWS
        return torch.stack([tokens[:, 0], lengths], 1 - dim)

    made = in_length_order(rows, first_and_length, dim)
    expected = [[int(row[0]) if len(row) else PADDING, len(row)] for row in rows]
    assert (made.T if dim else made).tolist() == expected


@pytest.mark.data
@pytest.mark.parametrize("name", KNOWN)
def test_padding_stays_under_a_tenth_on_the_five_sets(real_data, name):
    texts = next(iter(read_corpus_of_sentences(name).values())).texts
    buckets = Buckets(torch.tensor([len(text.split()) for text in texts]), 50, seed=0)
    assert all(buckets.padding(epoch) < 0.1 for epoch in range(5))
