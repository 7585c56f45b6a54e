"""Beam search against exhaustive search, greedy search and itself."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import torch
from torch import Tensor

from langevin.errors import LangevinError
from langevin.predict.beam import Hypothesis, beam_search, best_words

END = 1


class Tree:
    """A model whose next word depends on everything before it, and on the image: log p drawn from
    the prefix."""

    def __init__(self, seed: int, images: list[int], vocabulary: int = 4, sharpness: float = 1.5) -> None:
        self.seed, self.images, self.vocabulary, self.sharpness = seed, images, vocabulary, sharpness
        self.prefixes: list[tuple[int, ...]] = [(image,) for image in images]
        self.rows_seen: list[int] = []

    def log_p(self, prefix: tuple[int, ...]) -> list[float]:
        draw = random.Random(repr((self.seed, prefix)))
        logits = torch.tensor([draw.gauss(0, self.sharpness) for _ in range(self.vocabulary)], dtype=torch.float64)
        return logits.log_softmax(0).tolist()

    def begin(self) -> Tensor:
        return torch.tensor([self.log_p(prefix) for prefix in self.prefixes], dtype=torch.float64)

    def reorder(self, rows: Tensor) -> None:
        self.prefixes = [self.prefixes[row] for row in rows.tolist()]

    def step(self, tokens: Tensor) -> Tensor:
        self.rows_seen.append(len(tokens))
        self.prefixes = [(*prefix, token) for prefix, token in zip(self.prefixes, tokens.tolist(), strict=True)]
        return self.begin()

    def search(self, **options) -> list[list[Hypothesis]]:
        self.prefixes, self.rows_seen = [(image,) for image in self.images], []
        return beam_search(self.begin(), self.step, self.reorder, end=END, **options)


def exhaustive(model: Tree, image: int, longest: int, alpha: float) -> list[tuple[float, tuple[int, ...]]]:
    """Every caption of at most `longest` words with its score, best first."""
    words = [word for word in range(model.vocabulary) if word != END]
    found = []
    for length in range(longest + 1):
        for caption in itertools.product(words, repeat=length):
            tokens = (*caption, END)
            total = sum(model.log_p((image, *tokens[:t]))[tokens[t]] for t in range(len(tokens)))
            found.append((total / len(tokens) ** alpha, caption))
    return sorted(found, reverse=True)


def greedy(model: Tree, image: int, longest: int) -> tuple[int, ...]:
    caption: list[int] = []
    while len(caption) < longest:
        log_p = model.log_p((image, *caption))
        word = log_p.index(max(log_p))
        if word == END:
            break
        caption.append(word)
    return tuple(caption)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_wide_beam_equals_exhaustive_search(seed, alpha):
    model = Tree(seed, [0, 1, 2])
    every = 1 + 3 + 9 + 27
    for image, found in enumerate(model.search(beam=every, top=every, alpha=alpha, max_length=3)):
        expected = exhaustive(model, image, 3, alpha)
        assert [h.tokens for h in found] == [caption for _, caption in expected]
        assert [h.score for h in found] == pytest.approx([score for score, _ in expected], abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_a_wide_beam_is_found(seed):
    model = Tree(seed, [7], sharpness=3.0)
    for alpha in (0.0, 1.0):
        (best,) = model.search(beam=40, alpha=alpha, max_length=3)[0]
        assert best.tokens == exhaustive(model, 7, 3, alpha)[0][1]


def test_beam_of_one_is_greedy():
    model = Tree(3, list(range(40)), vocabulary=6)
    for alpha in (0.0, 1.0):
        found = model.search(beam=1, alpha=alpha, max_length=6)
        expected = [greedy(model, image, 6) for image in range(40)]
        assert [h[0].tokens for h in found] == expected
        assert len({len(caption) for caption in expected}) > 3  # short ones, long ones and cut ones


@pytest.mark.parametrize("alpha", [0.0, 0.8])
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_many_images_at_once_equal_one_at_a_time(beam, alpha):
    images = list(range(25))
    options = {"beam": beam, "top": 2, "alpha": alpha, "max_length": 7}
    together = Tree(11, images, vocabulary=9).search(**options)
    alone = [Tree(11, [image], vocabulary=9).search(**options)[0] for image in images]
    assert together == alone


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_stopping_early_changes_the_work_and_not_the_result(alpha):
    """Who asks for as many captions as the beam is wide has to search on where the best two are
    known."""
    model = Tree(5, list(range(60)), vocabulary=7, sharpness=2.5)
    options = {"beam": 4, "alpha": alpha, "max_length": 8}
    early = model.search(top=2, **options)
    work = sum(model.rows_seen)
    assert early == [found[:2] for found in model.search(top=4, **options)]
    assert work < sum(model.rows_seen) or alpha > 1  # a high power leaves hope until the end


def test_wider_beams_find_better_captions_on_average():
    model = Tree(8, list(range(80)), vocabulary=10)
    means = [sum(h[0].score for h in model.search(beam=beam, max_length=6)) / 80 for beam in (1, 3, 30)]
    assert means[0] < means[1] < means[2]


def test_word_log_probs_are_those_of_the_model():
    model = Tree(2, [4])
    for found in model.search(beam=5, top=5, alpha=0.5, max_length=5)[0]:
        tokens = (*found.tokens, END)
        expected = [model.log_p((4, *tokens[:t]))[tokens[t]] for t in range(len(tokens))]
        assert found.log_probs == pytest.approx(expected, abs=1e-12)
        assert found.score == pytest.approx(sum(expected) / len(expected) ** 0.5)
        assert found.log_prob == pytest.approx(sum(expected))


def chain(table: dict[tuple[int, ...], list[float]], **options) -> tuple[list[Hypothesis], list[list[tuple[int, ...]]]]:
    """Search over a table of probabilities by prefix; gives the captions and the prefixes that each
    step went on."""
    prefixes: list[tuple[int, ...]] = [()]
    seen = []

    def look() -> Tensor:
        return torch.tensor([table[prefix] for prefix in prefixes]).log()

    def reorder(rows: Tensor) -> None:
        prefixes[:] = [prefixes[row] for row in rows.tolist()]

    def step(tokens: Tensor) -> Tensor:
        prefixes[:] = [(*prefix, token) for prefix, token in zip(prefixes, tokens.tolist(), strict=True)]
        seen.append(list(prefixes))
        return look()

    return beam_search(look(), step, reorder, end=END, **options)[0], seen


def test_a_finished_hypothesis_holds_its_place_against_worse_ones():
    table = {
        (): [0.4, 0.35, 0.25],
        # two continuations of 0.18: only one finds room beside the finished one of 0.35
        (0,): [0.45, 0.1, 0.45],
        (0, 0): [0.3, 0.4, 0.3],
    }
    found, seen = chain(table, beam=2, top=2, max_length=2)
    assert seen == [[(0,)], [(0, 0)]]
    assert [h.tokens for h in found] == [(), (0, 0)]
    assert found[0].score == pytest.approx(math.log(0.35))


def test_a_finished_hypothesis_that_lost_its_place_still_wins_in_the_end():
    # normalised: the end at once scores log 0.3 = -1.20; two unfinished ones, -0.53 and -0.64, take
    # both places
    table = {
        (): [0.7, 0.3, 0.0, 0.0],
        (0,): [0.05, 0.05, 0.5, 0.4],
        (0, 2): [0.001, 0.001, 0.001, 0.997], (0, 3): [0.001, 0.001, 0.001, 0.997],
        (0, 2, 3): [0.999, 1e-12, 5e-4, 5e-4], (0, 3, 3): [0.999, 1e-12, 5e-4, 5e-4],
    }
    found, seen = chain(table, beam=2, max_length=3, alpha=1.0)
    assert seen == [[(0,)], [(0, 2), (0, 3)], [(0, 2, 3), (0, 3, 3)]]
    assert found[0].tokens == ()


def test_equal_scores_go_to_the_lower_token_then_to_the_older():
    def step(tokens: Tensor) -> Tensor:
        return torch.full((len(tokens), 5), 0.2).log()

    for beam in (2, 4):
        found = beam_search(
            torch.full((1, 5), 0.2).log(), step, lambda rows: None, end=4, beam=beam, top=2, alpha=1.0, max_length=2
        )[0]
        # all captions score log 0.2 (float32) and the end is the last token: what is kept is 0, 1,
        # …, then 00, 10, …
        assert [h.tokens for h in found] == [(0, 0), (1, 0)]


def test_best_words_breaks_ties_by_index():
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(0, 4, (200, 50), generator=generator).float()  # ties everywhere
    for count in (1, 3, 20, 50, 60):
        got, where = best_words(values, count)
        expected, order = values.sort(dim=1, descending=True, stable=True)
        assert torch.equal(got, expected[:, :count])
        assert torch.equal(where, order[:, :count])
    values = torch.randn(50, 40, generator=generator)
    values[:, ::3] = -math.inf
    got, where = best_words(values, 7)
    assert torch.equal(where, values.argsort(dim=1, descending=True)[:, :7])


def test_state_of_an_ensemble_is_selected_by_rows():
    # two members with state [members, rows, units]; the same search with the prefix recomputed from
    # scratch
    generator = torch.Generator().manual_seed(4)
    recurrent = torch.randn(2, 6, 6, generator=generator, dtype=torch.float64)
    embedding = torch.randn(2, 8, 6, generator=generator, dtype=torch.float64)
    head = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    first = torch.randn(2, 3, 6, generator=generator, dtype=torch.float64)
    state = first

    def predict(now: Tensor) -> Tensor:
        return (now @ head).log_softmax(-1).logsumexp(0) - math.log(2)

    def reorder(rows: Tensor) -> None:
        nonlocal state
        state = state.index_select(1, rows)

    def step(tokens: Tensor) -> Tensor:
        nonlocal state
        state = torch.tanh(state @ recurrent + embedding[:, tokens])
        return predict(state)

    for image, found in enumerate(beam_search(predict(first), step, reorder, end=END, beam=3, top=3, max_length=6)):
        for hypothesis in found:
            now, total = first[:, image : image + 1], []
            for token in (*hypothesis.tokens, END):
                total.append(float(predict(now)[0, token]))
                now = torch.tanh(now @ recurrent + embedding[:, [token]])
            assert hypothesis.log_probs == pytest.approx(total, abs=1e-9)


def test_captions_are_at_most_as_long_as_wanted():
    model = Tree(1, list(range(10)), vocabulary=12)
    found = model.search(beam=4, top=4, max_length=2)
    assert max(len(h.tokens) for image in found for h in image) == 2
    assert all(END not in h.tokens for image in found for h in image)


def test_no_images_give_no_captions():
    assert beam_search(torch.zeros(0, 5), lambda t: t, lambda rows: None, end=0) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beam": 0}, "beam must be at least 1, got 0"), ({"beam": -3}, "got -3"), ({"beam": 2, "top": 3}, "got 3"),
        ({"top": 0}, "got 0; ask for at least one"), ({"beam": 10**9}, "beam must be at most 1000, got 1000000000"),
        ({"max_length": 10**9}, "at most 1000 words, got 1000000000"),
        ({"alpha": math.nan}, "length power"), ({"alpha": -1.0}, "length power"),
        ({"max_length": 0}, "at least 1 word"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(LangevinError, match=words):
        Tree(0, [0]).search(**options)


def test_impossible_models_are_refused():
    begin = torch.full((2, 5), 0.2).log()
    with pytest.raises(LangevinError, match="NaN"):
        beam_search(begin * math.nan, lambda t: begin, lambda rows: None, end=0)
    with pytest.raises(LangevinError, match="end word 5"):
        beam_search(begin, lambda t: begin, lambda rows: None, end=5)
    with pytest.raises(LangevinError, match="shape"):
        beam_search(begin, lambda t: begin, lambda rows: None, end=4, beam=3)
    never = torch.tensor([[0.0, 0.5, 0.5]]).log()
    with pytest.raises(LangevinError, match="no probability within 3 words"):
        beam_search(never, lambda t: never.expand(len(t), 3), lambda rows: None, end=0, beam=2, max_length=3)
