"""Counts against plain dictionaries; static, adding, counting while reading; memory; bad input."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from langevin.data.batching import split_contiguous
from langevin.data.corpora import read_war_and_peace
from langevin.data.vocabulary import Vocabulary
from langevin.errors import LangevinError
from langevin.models.counts import Counts, choose_order
from langevin.models.counts_rows import COUNT
from tests.models.counts_reference import Reference

V = 12


def text(length: int, seed: int, vocabulary: int = V) -> torch.Tensor:
    """Tokens that repeat themselves enough for discounts of all kinds."""
    draw = np.random.default_rng(seed)
    tokens = [0]
    for _ in range(length):
        rule = (tokens[-1] * 5 + 3) % vocabulary
        other = int(draw.integers(vocabulary) ** 2 % vocabulary)
        tokens.append(rule if draw.random() < 0.6 else other)
    return torch.tensor(tokens[1:])


def both(order: int, start=(0,), length=600) -> tuple[Counts, Reference]:
    tokens, reference = text(length, 1), Reference(V, order, start)
    reference.add(tokens.tolist())
    return Counts.learn(tokens, V, order, start=start), reference


def close(found: torch.Tensor, expected: list[float], within: float = 1e-12) -> bool:
    return len(found) == len(expected) and bool(
        (found - torch.tensor(expected, dtype=torch.float64)).abs().max() < within
    )


@pytest.mark.parametrize("start", [(), (0,), (3, 0)])
@pytest.mark.parametrize("order", [1, 2, 3, 5, 8])
def test_static_is_what_dictionaries_say(order, start):
    counts, reference = both(order, start)
    held_out = text(200, 2)
    assert close(counts.log_probs(held_out), reference.log_probs(held_out.tolist()))


@pytest.mark.parametrize("order", [1, 3, 6])
def test_more_text_counts(order):
    counts, reference = both(order)
    before = counts.log_probs(text(50, 3))
    for seed in (4, 5):
        counts.add(text(150, seed))
        reference.add(text(150, seed).tolist())
    assert close(counts.log_probs(text(50, 3)), reference.log_probs(text(50, 3).tolist()))
    assert not torch.equal(before, counts.log_probs(text(50, 3)))


@pytest.mark.parametrize("start", [(), (0,), (3, 0)])
@pytest.mark.parametrize("order", [1, 2, 4, 7])
def test_counting_while_reading_is_what_dictionaries_say(order, start):
    counts, reference = both(order, start, length=150)
    held_out = text(250, 6)
    found = counts.log_probs(held_out, adapt=True)
    assert close(found, reference.log_probs(held_out.tolist(), adapt=True))
    assert not torch.equal(found, counts.log_probs(held_out))


def test_counting_while_reading_leaves_the_shared_table_alone():
    counts, _ = both(5)
    before = {name: tensor.clone() for name, tensor in counts.to_tensors().items()}
    nodes, slots = counts.ngrams.nodes[:2000].copy(), counts.ngrams.slots.copy()
    first = counts.log_probs(text(300, 7), adapt=True)
    assert torch.equal(first, counts.log_probs(text(300, 7), adapt=True))
    assert (counts.ngrams.nodes[:2000] == nodes).all()
    assert (counts.ngrams.slots == slots).all()
    after = counts.to_tensors()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_types_seen_four_times_fall_when_one_reaches_five():
    tokens = torch.zeros(5, dtype=torch.long)
    counts = Counts.learn(tokens[:4], 2, 1)
    assert counts.ngrams.kinds.tolist() == [[0, 0, 0, 1]]
    counts.add(tokens[:1])
    assert counts.ngrams.kinds.tolist() == [[0, 0, 0, 0]]
    counts, reference = both(4)
    for k, kinds in enumerate(counts.ngrams.kinds.tolist()):
        seen = Counter[int]()
        for context, types in reference.types.items():
            if len(context) == k:
                seen.update(types.values())
        assert kinds == [seen[j] for j in (1, 2, 3, 4)]


@pytest.mark.parametrize("order", [1, 4, 20])
def test_little_text(order):
    """Shorter than the order, one symbol, none at all."""
    for tokens in ([1, 2], [1], [], [1] * 40):
        reference = Reference(3, order, (0,))
        reference.add(tokens)
        counts = Counts.learn(torch.tensor(tokens, dtype=torch.long), 3, order, start=(0,))
        for adapt in (False, True):
            found = counts.log_probs(torch.tensor([1, 1, 2, 0]), adapt=adapt)
            assert close(found, reference.log_probs([1, 1, 2, 0], adapt=adapt))
        assert counts.log_probs(torch.tensor([], dtype=torch.long)).shape == (0,)
    alone = Counts.learn(torch.zeros(9, dtype=torch.long), 1, order)
    assert alone.log_probs(torch.zeros(3, dtype=torch.long)).tolist() == pytest.approx([0, 0, 0])


def test_a_table_that_grows_forgets_nothing():
    tokens = torch.from_numpy(np.random.default_rng(0).integers(50, size=20_000))
    counts = Counts.learn(tokens, 50, 4)
    assert counts.ngrams.size[0] > 20_000
    assert len(counts.ngrams.slots) >= 1.5 * counts.ngrams.size[0]
    wanted = Counter(zip(*(tokens[i:].tolist() for i in range(4)), strict=False))
    nodes, lengths = counts.ngrams.nodes, counts.ngrams.measure()
    assert int(nodes[: len(lengths), COUNT][lengths == 4].sum()) == wanted.total()
    assert int((lengths == 4).sum()) == len(wanted)


@pytest.mark.parametrize("rows", [300, 700, 1500])
def test_where_memory_is_full_the_order_falls(rows):
    tokens = text(3000, 8)
    counts = Counts.learn(tokens, V, 7, start=(0,), memory=44 * rows)
    assert 1 < counts.order < counts.asked_order == 7
    assert counts.bytes <= 44 * rows + 8192
    reference = Reference(V, counts.order, (0,))
    reference.add(tokens.tolist())
    held_out = text(200, 9)
    assert close(counts.log_probs(held_out), reference.log_probs(held_out.tolist()))


def test_memory_falls_short_while_more_is_added():
    counts = Counts.learn(text(300, 8), V, 5, start=(0,), memory=44 * 900)
    assert counts.order == 5
    counts.add(text(4000, 10))
    assert counts.order < 5
    assert counts.bytes <= 44 * 900 + 8192
    reader = counts.reader()
    reader.read(text(30, 11)[None])
    assert reader.foresee().exp().sum().item() == pytest.approx(1, abs=1e-9)


def test_too_little_memory_for_anything():
    with pytest.raises(LangevinError, match="expected memory for the counts of single tokens"):
        Counts.learn(torch.arange(1000), 1000, 3, memory=44 * 200)


def test_reading_goes_on_without_counting_when_memory_is_full(caplog):
    counts = Counts.learn(text(3000, 8), V, 3, start=(0,), memory=44 * 2000)
    counts.memory = 52 * 400
    held_out = torch.cat([text(500, 12), torch.randint(V, (3000,))])
    found = counts.log_probs(held_out, adapt=True)
    assert "counting while reading stops" in caplog.text
    assert found.isfinite().all()
    reader = counts.reader(adapt=True)
    pieces = [reader.read(piece[None])[0, 0] for piece in held_out.split(7)]
    assert torch.equal(torch.cat(pieces), found)
    assert reader.foresee().exp().sum().item() == pytest.approx(1, abs=1e-9)


def test_order_by_validation():
    train, valid = text(2000, 13), text(500, 14)
    choice = choose_order([train], [valid], V, range(1, 7), start=(0,))
    best = choice.counts.order
    assert best == min(choice.nll, key=lambda order: choice.nll[order]) > 1
    assert sorted(choice.nll) == list(range(1, min(best + 1, 6) + 1)), "one that is worse ends it"
    nll = -choice.counts.log_probs(valid).mean().item()
    assert nll == choice.nll[choice.counts.order]
    little = choose_order([train], [valid], V, [7, 1, 5], start=(0,), memory=44 * 700)
    assert max(little.nll) < 5
    halves = choose_order(train.split(1000), valid.split(250), V, [best], start=(0,))
    assert halves.nll[best] == pytest.approx(choice.nll[best], abs=0.05)
    with pytest.raises(LangevinError, match="expected orders to try"):
        choose_order([train], [valid], V, [])


@pytest.mark.parametrize("order", [0, 21, 100])
def test_orders_out_of_range(order):
    with pytest.raises(LangevinError, match=f"order must be from 1 to 20 tokens, got {order}"):
        Counts.learn(text(10, 0), V, order)


def test_tokens_of_another_vocabulary():
    counts, _ = both(3)
    for tokens, words in {
        (0, V): f"expected tokens from 0 to {V - 1}, got {V}; ",
        (-1, 0): f"expected tokens from 0 to {V - 1}, got -1; ",
    }.items():
        for call in (counts.add, counts.log_probs):
            with pytest.raises(LangevinError, match=words):
                call(torch.tensor(tokens))
        with pytest.raises(LangevinError, match=words):
            counts.reader().read(torch.tensor([tokens]))
    with pytest.raises(LangevinError, match=r"integer tokens in 1 rows, got torch.float32"):
        counts.add(torch.rand(4))
    with pytest.raises(LangevinError, match="expected tokens from 0 to 2, got 5"):
        Counts(3, 2, start=(5,))
    with pytest.raises(LangevinError, match="at least 1 token, got 0"):
        Counts(0, 2)


@pytest.mark.data
def test_penn_treebank(real_data):
    files = {split: real_data / "ptb" / f"ptb.{split}.txt" for split in ("train", "test")}
    raw = {split: path.read_bytes() for split, path in files.items()}
    vocabulary = Vocabulary.build(raw["train"], "word")
    tokens = {split: vocabulary.encode(part) for split, part in raw.items()}
    start = [vocabulary.numbers["<eos>"]]
    counts = Counts.learn(tokens["train"], len(vocabulary), 5, start=start)
    assert counts.order == 5
    assert math.exp(-counts.log_probs(tokens["test"]).mean()) == pytest.approx(141.05, abs=0.1)


def test_war_and_peace():
    raw = read_war_and_peace()
    vocabulary = Vocabulary.build(raw, "byte")
    pieces = split_contiguous(vocabulary.encode(raw), (80, 10, 10))
    start = [vocabulary.numbers["\n"]]
    counts = Counts.learn(pieces["train"], len(vocabulary), 8, start=start)
    assert -counts.log_probs(pieces["test"]).mean().item() == pytest.approx(1.2392, abs=0.0005)
    assert counts.bytes < 256 * 2**20
