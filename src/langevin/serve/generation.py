"""Texts that several clients ask for at once, written side by side.

All texts under way are rows of one reader: a step foresees the next token of each, draws it with
the row's own seed, and reads all of them together. New texts join between two steps; those that
are done, or whose client has gone, leave. A text that is written alone is the same, but for
rounding.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..models.reader import Reader
from ..posterior.mixture import log_mixture
from ..predict.generation import Drawing
from ..predict.language import LanguagePosterior
from .problems import Problem
from .requests import GenerateRequest
from .worker import Worker

AT_ONCE = 16
"""Texts that are written side by side; others wait."""
DONE = -1


@dataclass(eq=False)
class WrittenText:
    """One text under way."""

    request: GenerateRequest
    prompt: Tensor
    draw: Callable[[Tensor], int]
    tokens: asyncio.Queue[int | Exception] = field(default_factory=asyncio.Queue)
    written: int = 0
    gone: bool = False

    @property
    def finished(self) -> bool:
        return self.gone or self.written >= self.request.length


class Writer:
    """Writes all texts of one model that are asked for."""

    def __init__(self, name: str, posterior: LanguagePosterior, worker: Worker) -> None:
        self.name, self.posterior, self.worker = f"{name}/generate", posterior, worker
        self.waiting: list[WrittenText] = []
        self.rows: list[WrittenText] = []
        self.reader: Reader | None = None
        self.task: asyncio.Task[None] | None = None

    async def write(self, request: GenerateRequest) -> AsyncIterator[int]:
        """The tokens, one by one."""
        if request.sample is not None and request.sample >= len(self.posterior):
            raise Problem(422, f"a sample from 0 to {len(self.posterior) - 1}",
                          str(request.sample), "leave it out for the average")  # fmt: skip
        self.worker.limits.check_waiting(len(self.waiting))
        drawing = Drawing(request.seed, request.softmax_temperature, request.top_k, request.top_p)
        text = WrittenText(request, self.posterior.spell_prompt(request.prompt), drawing.begin())
        self.waiting.append(text)
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self.work())
        try:
            while (token := await text.tokens.get()) != DONE:
                if isinstance(token, Exception):
                    raise token
                yield token
        finally:
            text.gone = True

    async def work(self) -> None:
        """Step after step until nobody waits for a text."""
        while self.waiting or self.rows:
            try:
                drawn = await self.worker.run(self.step)
            except Exception as error:
                for text in (*self.rows, *self.waiting):
                    text.tokens.put_nowait(error)
                self.rows, self.waiting, self.reader = [], [], None
                return
            self.worker.metrics.batch(self.name, len(drawn))
            self.worker.metrics.queue(self.name, len(self.waiting))
            for text, token in drawn:
                text.tokens.put_nowait(token)
                if text.written >= text.request.length:
                    text.tokens.put_nowait(DONE)

    @torch.no_grad()
    def step(self) -> list[tuple[WrittenText, int]]:
        """A token more of each text."""
        self.leave()
        while self.waiting and len(self.rows) < AT_ONCE:
            self.enter(self.waiting.pop(0))
        if self.reader is None:
            return []
        each = self.reader.foresee()
        mean = log_mixture(each, self.reader.weights)
        drawn = []
        for row, text in enumerate(self.rows):
            alone = text.request.sample
            drawn.append((text, text.draw(mean[row] if alone is None else each[alone, row])))
        for text, _ in drawn:
            text.written += 1
        self.reader.read(torch.tensor([[token] for _, token in drawn]))
        return drawn

    def enter(self, text: WrittenText) -> None:
        """One more row, after its prompt was read."""
        if text.finished:
            return
        reader = self.posterior.reader()
        reader.begin(1)
        if len(text.prompt):
            reader.read(text.prompt[None])
        if self.reader is None:
            self.reader = reader
        else:
            self.reader.join(reader)
        self.rows.append(text)

    def leave(self) -> None:
        """Rows of texts that are done."""
        stay = [at for at, text in enumerate(self.rows) if not text.finished]
        if len(stay) == len(self.rows):
            return
        self.rows = [self.rows[at] for at in stay]
        if not stay:
            self.reader = None
        elif self.reader is not None:
            self.reader.take(torch.tensor(stay))
