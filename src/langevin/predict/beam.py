"""Beam search over any next-word distribution, many images at once.

The model stays outside: it gives log-probabilities of the next word for a number of rows and can
put its carried state into another order. A row is one unfinished hypothesis; rows run by image,
then by rank in the beam.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import LangevinError

NOTHING = -math.inf
WIDEST, LONGEST = 1000, 1000
"""The widest beam and the longest caption, in words: far beyond use, and within memory."""


@dataclass(frozen=True)
class Hypothesis:
    """One finished caption: its words without the end word, and log p of each, the end word
    last."""

    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    score: float

    @property
    def log_prob(self) -> float:
        """log p of the whole caption, end word included, not length-normalised."""
        return math.fsum(self.log_probs)


@torch.no_grad()
def beam_search(
    begin: Tensor, step: Callable[[Tensor], Tensor], reorder: Callable[[Tensor], None], *, end: int,
    beam: int = 5, top: int = 1, alpha: float = 0.0, max_length: int = 20,
) -> list[list[Hypothesis]]:  # fmt: skip
    """score(w₁…w_L) = Σ log p(wᵢ | w₁…wᵢ₋₁) / L^α, the end word counted as w_L.

    α = `alpha` = 0 is the plain sum.

    `begin` [images, vocabulary] holds log p of the first word. From then on, each round calls
    `reorder(rows)`, where `rows[i]` is the old row whose state the new row i takes (old rows of the
    first round: the images; a row may come several times or not at all, images that are done
    leave), and then `step(tokens)` with the last word of each new row, which returns log p of the
    next word [rows, vocabulary].

    The `beam` best hypotheses of an image are kept, finished ones among them: these hold their
    place while their score does, and are remembered even when they lose it. Equal scores: lower
    token first, then the older hypothesis. A caption has at most `max_length` words; after that
    many only the end word may follow, at its honest price.

    Returns per image the `top` best finished hypotheses, best first; fewer only where there are too
    few captions of probability above zero. An image is done when its beam holds nothing unfinished,
    or when no continuation can enter its `top` best: Σ log p only falls, and no length divides it
    by more than (max_length + 1)^α.
    """
    check_settings(beam, top, alpha, max_length)
    if begin.dim() != 2 or not 0 <= end < begin.shape[1]:
        raise LangevinError(
            f"expected log-probabilities [images, vocabulary] that hold the end word {end}, got "
            f"{tuple(begin.shape)}"
        )
    search = _Beams(begin, end, beam, top, alpha, max_length)
    log_probs = begin
    for round_ in range(max_length + 1):
        parents = search.advance(log_probs, only_end=round_ == max_length)
        rows, tokens = search.retire(parents)
        if not len(rows):
            break
        reorder(rows)
        log_probs = step(tokens)
        if log_probs.shape != (len(rows), begin.shape[1]):
            expected, got = (len(rows), begin.shape[1]), tuple(log_probs.shape)
            raise LangevinError(
                f"expected log-probabilities of shape {expected} from the model, got {got}"
            )
    return search.results()


def check_settings(beam: int, top: int, alpha: float, max_length: int) -> None:
    """Refuse what no search can do, or none within memory."""
    if not 1 <= beam <= WIDEST:
        bound = "at least 1" if beam < 1 else f"at most {WIDEST}"
        raise LangevinError(
            f"beam must be {bound}, got {beam}; 1 is the greedy caption, 5 is usual"
        )
    if not 1 <= top <= beam:
        remedy = "ask for at least one" if top < 1 else "ask for fewer or widen the beam"
        raise LangevinError(
            f"expected between 1 and {beam} captions from a beam of {beam}, got {top}; {remedy}"
        )
    if not (math.isfinite(alpha) and alpha >= 0):
        raise LangevinError(
            f"the length power must be a number of at least 0, got {alpha}; 0 is the plain score"
        )
    if not 1 <= max_length <= LONGEST:
        bound = "at least 1 word" if max_length < 1 else f"at most {LONGEST} words"
        raise LangevinError(f"the longest caption must have {bound}, got {max_length}; 20 is usual")


def best_words(log_probs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row and where they stand.

    Equal values by lower index, which `topk` leaves open.
    """
    count = min(count, log_probs.shape[1])
    values, words = log_probs.topk(min(count + 1, log_probs.shape[1]), dim=1)
    tied = (
        (values[:, count - 1] == values[:, -1])
        & (values[:, -1] > NOTHING)
        & (values.shape[1] > count)
    )
    values, words = values[:, :count], words[:, :count]
    words, order = words.sort(dim=1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    words = words.gather(1, order)
    if tied.any():  # a value on the border equals one beyond it: which topk took is chance
        ranked, order = log_probs[tied].sort(dim=1, descending=True, stable=True)
        values[tied], words[tied] = ranked[:, :count], order[:, :count]
    return values, words


class _Beams:
    """The hypotheses of the images still searched, [images, beam], and the best finished ones.

    These are of all images, [images, top].
    """

    def __init__(
        self, begin: Tensor, end: int, beam: int, top: int, alpha: float, max_length: int
    ) -> None:
        images, device = begin.shape[0], begin.device
        self.end, self.beam, self.top, self.alpha, self.longest = (
            end,
            beam,
            top,
            alpha,
            max_length + 1,
        )
        self.image = torch.arange(
            images, device=device
        )  # which image a line of the beam belongs to
        self.total = torch.full(
            (images, beam), NOTHING, dtype=torch.float64, device=device
        )  # NOTHING: an empty place
        self.total[:, 0] = 0.0
        self.length = torch.zeros(images, beam, dtype=torch.long, device=device)
        self.finished = torch.zeros(images, beam, dtype=torch.bool, device=device)
        self.tokens = torch.full((images, beam, self.longest), end, dtype=torch.long, device=device)
        self.words = torch.zeros(
            images, beam, self.longest, dtype=torch.float64, device=device
        )  # log p of each token
        self.best_score = torch.full((images, top), NOTHING, dtype=torch.float64, device=device)
        self.best_length = torch.zeros(images, top, dtype=torch.long, device=device)
        self.best_tokens = self.tokens[:, :1].repeat(1, top, 1)
        self.best_words = self.words[:, :1].repeat(1, top, 1)

    @property
    def live(self) -> Tensor:
        return ~self.finished & (self.total > NOTHING)

    def score(self, total: Tensor, length: Tensor | int) -> Tensor:
        lengths = torch.as_tensor(length, dtype=torch.float64, device=total.device)
        return total / lengths.pow(self.alpha)

    def advance(self, log_probs: Tensor, *, only_end: bool) -> Tensor:
        """Continue every live hypothesis by one word and keep the best.

        Gives the row that each place came from.
        """
        values, words = self._next_words(log_probs, only_end=only_end)
        live, old_finished, width = self.live, self.finished, values.shape[1]
        word_log_prob = torch.full(
            (*self.total.shape, width), NOTHING, dtype=torch.float64, device=self.total.device
        )
        word_log_prob[live] = values.double().clamp_max(0.0)  # an average may round to above 1
        word_log_prob[old_finished, 0] = 0.0  # a finished hypothesis has one continuation: itself
        token = torch.full_like(word_log_prob, self.end, dtype=torch.long)
        token[live] = words
        total = (self.total.unsqueeze(2) + word_log_prob).flatten(1)
        length = self.length + live
        order = self._rank(
            self.score(total, length.clamp_min(1).repeat_interleave(width, 1)), token.flatten(1)
        )
        place = order // width
        parents = (live.flatten().cumsum(0) - 1).view_as(live).gather(1, place)
        self.total, self.length = total.gather(1, order), length.gather(1, place)
        was_finished = old_finished.gather(1, place)
        token = token.flatten(1).gather(1, order)
        self._write(place, token, word_log_prob.flatten(1).gather(1, order), ~was_finished)
        last = self.tokens.gather(2, (self.length - 1).clamp_min(0).unsqueeze(2)).squeeze(2)
        self.finished = (last == self.end) & (self.total > NOTHING)
        self._remember(self.finished & ~was_finished)
        return parents

    def _next_words(self, log_probs: Tensor, *, only_end: bool) -> tuple[Tensor, Tensor]:
        """The best next words of each row and log p of each; in the end the end word alone."""
        if only_end:
            values = log_probs[:, self.end, None]
            words = log_probs.new_full((len(log_probs), 1), self.end).long()
        else:
            values, words = best_words(log_probs, self.beam)
        if values.isnan().any():  # topk and sort put NaN first
            raise LangevinError(
                "expected log-probabilities of words, got NaN; look at the weights and the features"
            )
        return values, words

    def _rank(self, score: Tensor, token: Tensor) -> Tensor:
        """Best first; the flat order is the age: two stable sorts give (score, token, age)."""
        by_token = token.argsort(dim=1, stable=True)
        by_score = score.gather(1, by_token).argsort(dim=1, descending=True, stable=True)
        return by_token.gather(1, by_score)[:, : self.beam]

    def _write(self, place: Tensor, token: Tensor, word_log_prob: Tensor, grown: Tensor) -> None:
        """Bring the histories into the new order and append the new word where there is one."""
        history = place.unsqueeze(2).expand(-1, -1, self.longest)
        self.tokens, self.words = self.tokens.gather(1, history), self.words.gather(1, history)
        line, column = grown.nonzero(as_tuple=True)
        last = (self.length[grown] - 1).clamp_min(0)
        self.tokens[line, column, last] = token[grown]
        self.words[line, column, last] = word_log_prob[grown]

    def _remember(self, new: Tensor) -> None:
        """Merge newly finished hypotheses into the best ones; of equals the older stands first."""
        if not new.any():
            return
        score = self.score(self.total, self.length.clamp_min(1)).where(new, NOTHING)
        both = torch.cat([self.best_score[self.image], score], 1)
        order = both.argsort(dim=1, descending=True, stable=True)[:, : self.top]
        history = order.unsqueeze(2).expand(-1, -1, self.longest)
        self.best_score[self.image] = both.gather(1, order)
        lengths = torch.cat([self.best_length[self.image], self.length], 1)
        self.best_length[self.image] = lengths.gather(1, order)
        tokens = torch.cat([self.best_tokens[self.image], self.tokens], 1)
        self.best_tokens[self.image] = tokens.gather(1, history)
        words = torch.cat([self.best_words[self.image], self.words], 1)
        self.best_words[self.image] = words.gather(1, history)

    def retire(self, parents: Tensor) -> tuple[Tensor, Tensor]:
        """Let images go that are done.

        Gives the old rows of the new rows, and the last word of each.
        """
        live = self.live
        hope = self.score(self.total.where(live, NOTHING), self.longest).amax(1)
        keep = live.any(1) & (
            self.best_score[self.image, -1] < hope
        )  # of equal ones the older would stand first
        self.image, self.total, self.length = self.image[keep], self.total[keep], self.length[keep]
        self.finished, self.tokens, self.words = (
            self.finished[keep],
            self.tokens[keep],
            self.words[keep],
        )
        live = live[keep]
        last = self.tokens.gather(2, (self.length - 1).clamp_min(0).unsqueeze(2)).squeeze(2)
        return parents[keep][live], last[live]

    def results(self) -> list[list[Hypothesis]]:
        if (self.best_score[:, 0] == NOTHING).any():
            raise LangevinError(
                f"the model gives the end word {self.end} no probability within "
                f"{self.longest - 1} words; "
                "let the captions be longer, or look at its weights"
            )
        columns = (self.best_score, self.best_length, self.best_tokens, self.best_words)
        return [
            [
                Hypothesis(tuple(tokens[: length - 1]), tuple(words[:length]), score)
                for score, length, tokens, words in zip(*image, strict=True)
                if score > NOTHING
            ]
            for image in zip(*(column.tolist() for column in columns), strict=True)
        ]
