"""Language models that are served: texts are scored one by one and written side by side."""

from __future__ import annotations

from collections.abc import Sequence

from ..predict.foreign import compare_surprise
from ..predict.language import LanguagePosterior
from ..process import SILENT, Progress
from ..store.members import NETWORK
from .answers import NextAnswer, ScoreAnswer, encode
from .generation import Writer
from .models import USUAL, Served
from .requests import NextRequest, ScoreRequest
from .worker import Batches, Worker


class ServedLanguage(Served[LanguagePosterior]):
    """A language model: texts are scored one after the other, and written side by side."""

    noun = "a language model"

    def __init__(
        self, name: str, posterior: LanguagePosterior, worker: Worker, progress: Progress = SILENT
    ) -> None:
        super().__init__(name, posterior, worker)
        self.scores = Batches[ScoreRequest](f"{name}/score", worker, self.score_all)
        self.nexts = Batches[NextRequest](f"{name}/next", worker, self.next_all)
        self.writer = Writer(name, posterior, worker)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.posterior.labels()

    @property
    def level(self) -> str | None:
        return self.posterior.vocabulary.level

    @property
    def members(self) -> dict[str, float]:
        pool = self.posterior.pool()
        return dict(zip(pool.names, pool.shares, strict=True)) if pool.names != [NETWORK] else {}

    def try_out(self) -> str:
        tokens = self.posterior.score(USUAL).tokens
        return f"to score a text of {len(tokens)} tokens"

    def score_all(self, requests: Sequence[ScoreRequest]) -> list[bytes]:
        answers = []
        for asked in requests:
            found = self.posterior.score(asked.text, adapt=asked.adapt)
            told = compare_surprise(self.posterior, found.nll)
            answers.append(encode(ScoreAnswer(**vars(found), surprise=told)))
        return answers

    def next_all(self, requests: Sequence[NextRequest]) -> list[bytes]:
        return [encode(NextAnswer(tuple(self.posterior.next(asked.text, asked.top, asked.tokens))))
                for asked in requests]  # fmt: skip
