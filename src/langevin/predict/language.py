"""A language model that answers: what a text scores, what comes next, how it goes on.

All of it is asked of readers: the samples of the network, and whatever else foresees with them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from ..data.corpora import open_text
from ..data.display import visible
from ..data.text import bytes_of, words_in
from ..data.vocabulary import SpelledText, Vocabulary
from ..errors import LangevinError
from ..models.reader import Reader
from ..models.spelling import Spelling
from ..posterior.ensemble_reader import EnsembleReader
from ..posterior.mixture import log_mixture, mixture, part_spread
from ..posterior.pool import Member, Pool
from ..posterior.scores import Scores
from ..posterior.switching import SHARE
from ..store.members import COUNTED, NETWORK, OWN, Members, has_members, read_members
from .base import Posterior
from .generation import Drawing, letters
from .pooled import add_pool
from .results import Evaluation, TextScore, TokenScore

log = logging.getLogger(__name__)

PROBABILITIES = 1 << 22
"""Of all parts and tokens, held at once while a text is scored: 32 MB, a few times."""
CHUNK = 1 << 16
"""Tokens that are read at once where only what was written is asked for."""


class LanguagePosterior(Posterior):
    """A language model."""

    noun, maker = "language model", "langevin train --text"

    def members(self, adapt: bool = False) -> list[Member]:
        """What foresees tokens, the network first; with `adapt` each for a text to learn from."""
        network = EnsembleReader(self.ensemble, len(self.vocabulary), self.vocabulary.start)
        if self.beside is None:
            return [Member(NETWORK, network)]
        record, counts = self.beside.record, self.beside.counts
        own = record.reading_on if adapt else None
        weights = own.weights if own else record.weights
        members = [Member(NETWORK, network, weights[NETWORK]),
                   Member(COUNTED, counts.reader(adapt=adapt), weights[COUNTED])]
        if own:
            members.append(Member(OWN, counts.blank().reader(adapt=True), weights[OWN]))
        return members

    @cached_property
    def beside(self) -> Members | None:
        """What the folder holds beside the samples."""
        return read_members(self.path, self.vocabulary)

    @property
    def pools(self) -> bool:
        return has_members(self.path)

    def with_members(self, result: Evaluation, each: Sequence[Tensor]) -> Evaluation:
        return add_pool(result, self.opened, self.data, self.model, each)

    def reader(self, adapt: bool = False) -> Reader:
        """What foresees the next token, and reads on.

        With `adapt` it learns from what it reads: counts count on, and the weights of all parts
        follow. It then reads one text at a time.
        """
        pool = self.pool(adapt)
        return pool if adapt or len(pool.members) > 1 else pool.members[0].reader

    def pool(self, adapt: bool = False) -> Pool:
        """All members as one, be it one only."""
        own = self.beside.record.reading_on if self.beside else None
        return Pool(self.members(adapt), adapt=adapt, share=own.share if own else SHARE)

    def labels(self, adapt: bool = False) -> tuple[str, ...]:
        """What each part is: "step 400", or the name of another member."""
        several = len({sample.chain for sample in self.draws}) > 1
        steps = [f"chain {sample.chain}, step {sample.step}" if several else f"step {sample.step}"
                 for sample in self.draws]  # fmt: skip
        _, *others = self.members(adapt)
        return (*steps, *(label for member in others for label in part_names(member)))

    def score(self, text: str, adapt: bool = False) -> TextScore:
        """How probable this text is, token by token, read after the level's start.

        With `adapt` the model learns from the text while it reads.
        """
        spelled = self.vocabulary.spell(text)
        refuse_nothing(spelled.tokens[1:], repr(text))
        return self.score_tokens(spelled, bytes_of(text), adapt)

    def score_tokens(
        self, spelled: SpelledText, raw: bytes | None = None, adapt: bool = False
    ) -> TextScore:
        """The same of tokens that stand after a first one; `raw` is their text, if it is known."""
        pool, tokens = self.pool(adapt), spelled.tokens[1:]
        width = max(1, PROBABILITIES // (sum(pool.sizes) * len(self.vocabulary)))
        columns = [column for piece in torch.split(tokens, width)
                   for column in told_of(pool, piece)]
        names = self.vocabulary.pieces(spelled.tokens)[1:]
        rows = [
            TokenScore(name, math.exp(log_p), std, entropy, information, between, parts,
                       spelled.unknown.get(at))
            for at, (name, (log_p, (std, entropy, information, between), parts))
            in enumerate(zip(names, columns, strict=True), 1)
        ]  # fmt: skip
        whole = self.text_scores(tokens, math.fsum(log_p for log_p, *_ in columns), raw)
        assert whole.perplexity is not None
        assert whole.unknown_share is not None
        return TextScore(whole.nll, whole.perplexity, whole.unknown_share, len(self), tuple(rows),
                         self.labels(adapt), whole.bits_per_byte)  # fmt: skip

    def measure(self, text: str | Path, adapt: bool = False) -> Scores:
        """The score of a text or a file of any length as a whole."""
        tokens, raw = self.read_source(text)
        pool = self.pool(adapt)
        pieces = torch.split(tokens, CHUNK)
        log_p = math.fsum(float(pool.score(piece[None]).sum()) for piece in pieces)
        return self.text_scores(tokens, log_p, raw)

    def text_scores(self, tokens: Tensor, log_p: float, raw: bytes | None) -> Scores:
        """Of a text whose tokens have this log p in all."""
        return text_scores(self.vocabulary, tokens, log_p, raw,
                           self.beside.spelling if self.beside else None)

    def read_source(self, text: str | Path) -> tuple[Tensor, bytes]:
        """The tokens of a text or a file, and its bytes."""
        if isinstance(text, Path):
            file = open_text(text)
            raw, tokens = file.read(), self.vocabulary.encode_text(file)
        else:
            raw, tokens = bytes_of(text), self.vocabulary.spell(text).tokens[1:]
        return refuse_nothing(tokens, repr(str(text))), raw

    def next(self, text: str = "", top: int = 10, tokens: int | None = None) -> list[TokenScore]:
        """The most probable tokens after this text, or after so many tokens of it.

        Entropies are of all that may come.
        """
        if top < 1:
            raise LangevinError(f"expected at least one token to show, got top={top}")
        pool = self.pool()
        pool.read(self.spell_prompt(text)[None, :tokens])
        each = pool.foresee()[:, 0]
        said = mixture(each, pool.weights[:, 0], pool.sizes)
        p, std = said.log_probs.exp(), part_spread(each, pool.weights, pool.sizes).std
        known = (float(said.entropy), float(said.mutual_information), float(said.between))
        return [
            TokenScore(self.vocabulary.token_text(number), float(p[number]), float(std[number]),
                       *known, parts=tuple(each[:, number].exp().tolist()))
            for number in p.topk(min(top, len(p))).indices.tolist()
        ]  # fmt: skip

    def generate(
        self, prompt: str = "", length: int = 200, *, seed: int = 0,
        softmax_temperature: float = 0.8, top_k: int | None = None, top_p: float | None = None,
    ) -> Iterator[str]:
        """The text that follows the prompt, `length` tokens of it, piece by piece in whole letters.

        Each token is drawn from p^(1/softmax_temperature); 0 takes the most probable one.
        `top_k` keeps the k most probable, `top_p` the fewest that hold this probability.
        """
        drawing = Drawing(seed, softmax_temperature, top_k, top_p)
        tokens = self.continue_tokens(self.spell_prompt(prompt), length, drawing)
        return letters(self.vocabulary, tokens, prompt)

    def continue_tokens(self, tokens: Tensor, length: int, drawing: Drawing) -> Iterator[int]:
        """So many tokens after these, each drawn from p̄."""
        pool = self.pool()
        pool.read(tokens[None])
        draw = drawing.begin()
        for _ in range(length):
            token = draw(log_mixture(pool.foresee()[:, 0], pool.weights[:, 0]))
            yield token
            pool.read(torch.tensor([[token]]))

    def spell_prompt(self, text: str) -> Tensor:
        """Its tokens; what became <unk> is said."""
        spelled = self.vocabulary.spell(text)
        if spelled.unknown:
            log.warning("read as <unk>: %s", ", ".join(map(visible, spelled.unknown.values())))
        return spelled.tokens[1:]


def told_of(pool: Pool, tokens: Tensor) -> Iterable[tuple[float, list[float], tuple[float, ...]]]:
    """Of each token: log p̄; std, entropy and what parts and members disagree about; p by part."""
    each = pool.foresee_along(tokens[None])[:, 0]
    weights = pool.read_with[:, 0]
    said = mixture(each, weights, pool.sizes)
    observed = each.gather(-1, tokens.long().expand(len(each), -1)[..., None])[..., 0]
    spread = part_spread(observed, weights, pool.sizes)
    told = [spread.std, said.entropy, said.mutual_information, said.between]
    numbers = torch.stack(told, 1)
    parts = map(tuple, observed.exp().T.tolist())
    return zip(log_mixture(observed, weights).tolist(), numbers.tolist(), parts, strict=True)


def text_scores(
    vocabulary: Vocabulary, tokens: Tensor, log_p: float, raw: bytes | None = None,
    spelling: Spelling | None = None,
) -> Scores:  # fmt: skip
    """Of a text whose tokens have this log p in all.

    Bits a byte are told where the tokens, and the spelling of unknown words, can be turned back
    into the bytes.
    """
    nll, unknown = -log_p / len(tokens), vocabulary.unknown_share(tokens)
    if unknown:
        spelled = spelled_log_p(vocabulary, tokens, raw, spelling) if raw and spelling else None
    else:
        spelled = 0.0 if raw and vocabulary.decode(tokens) == raw else None
    bits = None if spelled is None or not raw else -(log_p + spelled) / math.log(2) / len(raw)
    return Scores(nll, len(tokens), math.exp(min(nll, 700.0)), bits, unknown_share=unknown)


def spelled_log_p(
    vocabulary: Vocabulary, tokens: Tensor, raw: bytes, spelling: Spelling
) -> float | None:
    """log p of how the unknown words of a text are written.

    None where its words do not give the bytes, or <unk> itself stands in it.
    """
    blocks = words_in(raw, vocabulary.line_end) if vocabulary.level == "word" else ()
    words = [word for block in blocks for word in block][: len(tokens)]
    unknown = [word for word in words if word not in vocabulary.numbers]
    places = sum(token == vocabulary.unknown for token in tokens.tolist())
    if vocabulary.join_words(words) != raw or len(unknown) < places:
        return None
    return spelling.log_p(unknown)


def part_names(member: Member) -> list[str]:
    """The name of a member for each of its parts."""
    parts = len(member.reader.weights)
    return [member.name if parts == 1 else f"{member.name} {part}" for part in range(1, parts + 1)]


def refuse_nothing(tokens: Tensor, text: str) -> Tensor:
    """A score needs a token to predict."""
    if not len(tokens):
        raise LangevinError(f"expected a text of at least one token, got {text}; pass some words")
    return tokens
