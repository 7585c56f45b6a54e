"""Counts behind the interface of readers: chunks, rows, what may come next."""

import pytest
import torch

from langevin.errors import LangevinError
from langevin.models.counts import Counts
from langevin.models.reader import Reader
from tests.models.counts_reference import Reference
from tests.models.test_counts import V, both, text


def chunks_of(reader: Reader, tokens: torch.Tensor, size: int) -> torch.Tensor:
    return torch.cat([reader.read(piece) for piece in tokens.split(size, dim=1)], 2)


@pytest.mark.parametrize("adapt", [False, True])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_chunk_is_read_as_its_tokens_are(adapt, size):
    counts, _ = both(5)
    tokens = text(60, 20)
    reader = counts.reader(adapt=adapt)
    expected = counts.log_probs(tokens, adapt=adapt)
    assert torch.equal(chunks_of(reader, tokens[None], size)[0, 0], expected)
    reader.begin(1)
    assert torch.equal(reader.read(tokens[None])[0, 0], expected)


@pytest.mark.parametrize("adapt", [False, True])
def test_what_is_foreseen_is_what_is_read(adapt):
    counts, _ = both(4, length=150)
    reader = counts.reader(adapt=adapt)
    for token in text(120, 21).tolist():
        log_p = reader.foresee()
        assert log_p.shape == (1, 1, V)
        assert abs(log_p.exp().sum().item() - 1) < 1e-9
        read = reader.read(torch.tensor([[token]]))[0, 0, 0]
        assert abs(log_p[0, 0, token] - read) < 1e-12


def test_all_that_is_foreseen_is_what_dictionaries_say():
    counts, reference = both(4, length=150)
    reader, tokens = counts.reader(), text(40, 21)
    for i in range(len(tokens)):
        expected = torch.tensor(reference.all_probs(tokens[:i].tolist()), dtype=torch.float64)
        assert (reader.foresee()[0, 0].exp() - expected).abs().max() < 1e-12
        reader.read(tokens[None, i : i + 1])


def test_all_that_is_foreseen_while_counting_is_what_dictionaries_say():
    counts, reference = both(4, length=150)
    reader, tokens = counts.reader(adapt=True), text(80, 22).tolist()
    history: list[int] = []
    for token in tokens:
        expected = torch.tensor(reference.all_probs(history), dtype=torch.float64)
        assert (reader.foresee()[0, 0].exp() - expected).abs().max() < 1e-12
        reader.read(torch.tensor([[token]]))
        reference.count((0, *history), token)
        history.append(token)


def test_rows_side_by_side():
    counts, _ = both(5)
    tokens = torch.stack([text(40, seed) for seed in (23, 24, 25)])
    reader = counts.reader()
    reader.begin(3)
    assert torch.equal(reader.weights, torch.ones(1, 3, dtype=torch.float64))
    found = reader.read(tokens)
    assert found.shape == (1, 3, 40)
    for row in range(3):
        assert torch.equal(found[0, row], counts.log_probs(tokens[row]))
    assert reader.foresee().shape == (1, 3, V)


def test_rows_are_taken_and_joined():
    counts, _ = both(4)
    tokens, after = torch.stack([text(20, 26), text(20, 27)]), text(15, 28)
    reader, late = counts.reader(), counts.reader()
    reader.begin(2)
    reader.read(tokens)
    reader.take(torch.tensor([1, 0, 1]))
    reader.join(late)
    assert reader.weights.shape == (1, 4)
    found = reader.read(after.expand(4, -1))[0]
    for row, before in enumerate([tokens[1], tokens[0], tokens[1], after[:0]]):
        assert torch.equal(found[row], counts.log_probs(torch.cat([before, after]))[len(before) :])
    assert late.weights.shape == (1, 1)
    assert torch.equal(late.read(after[None])[0, 0], counts.log_probs(after))
    reader.take(torch.tensor([], dtype=torch.long))
    assert reader.foresee().shape == (1, 0, V)


def test_while_counting_there_is_one_text():
    counts, _ = both(3)
    reader = counts.reader(adapt=True)
    refused = "expected one text to count while reading, got 2 rows"
    with pytest.raises(LangevinError, match=refused):
        reader.begin(2)
    with pytest.raises(LangevinError, match=refused):
        reader.take(torch.tensor([0, 0]))
    with pytest.raises(LangevinError, match=refused):
        reader.join(counts.reader(adapt=True))
    reader.read(text(30, 29)[None])
    reader.take(torch.tensor([0]))
    expected = counts.log_probs(text(40, 29), adapt=True)[30:]
    assert torch.equal(reader.read(text(40, 29)[None, 30:])[0, 0], expected)


def test_what_a_reader_refuses():
    counts, _ = both(3)
    reader = counts.reader()
    with pytest.raises(LangevinError, match="counts foresee texts alone"):
        reader.begin(1, torch.zeros(1, 4))
    with pytest.raises(LangevinError, match=r"expected rows from 0 to 0, got \[1\]"):
        reader.take(torch.tensor([1]))
    with pytest.raises(LangevinError, match="expected a reader of the same counts"):
        reader.join(both(3)[0].reader())
    with pytest.raises(LangevinError, match="integer tokens in 1 rows"):
        reader.read(torch.zeros(2, 3, dtype=torch.long))
    counts.add(text(10, 30))
    for call in (reader.foresee, lambda: reader.read(torch.tensor([[1]]))):
        with pytest.raises(LangevinError, match="more was counted since; begin again"):
            call()
    reader.begin(1)
    assert torch.equal(reader.read(text(9, 31)[None])[0, 0], counts.log_probs(text(9, 31)))


def test_static_counts_after_a_reader_counted():
    """A reader's own table is gone when it begins again."""
    counts, _ = both(3)
    reader = counts.reader(adapt=True)
    first = reader.read(text(50, 32)[None])
    reader.begin(1)
    assert torch.equal(reader.read(text(50, 32)[None]), first)


def test_a_row_that_nothing_is_known_of():
    """A token that was never seen leaves the empty context alone."""
    counts = Counts.learn(torch.tensor([0, 1] * 20), 5, 4)
    reference = Reference(5, 4)
    reference.add([0, 1] * 20)
    reader = counts.reader()
    reader.read(torch.tensor([[4, 3]]))
    expected = torch.tensor(reference.all_probs([4, 3]), dtype=torch.float64)
    assert (reader.foresee()[0, 0].exp() - expected).abs().max() < 1e-12
