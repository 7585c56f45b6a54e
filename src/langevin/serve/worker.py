"""One thread that computes, and queues that join what waits for it into batches.

The event loop only waits. All models share the thread, so that torch's own threads are never asked
for by two at once. A batch is what has come by the time the thread is free, up to `most` in size. A
request that comes alone is held back for WINDOW seconds; where several come at a time, those that
were just answered are given a moment to ask again: SHARE of what the last batch took, LONGEST
seconds at most. Answers come as the bytes that
are sent: what takes long to write is written in the thread, too.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from .limits import Limits
from .metrics import Metrics

WINDOW, SHARE, LONGEST = 0.001, 0.05, 0.01
Item = TypeVar("Item")
T = TypeVar("T")


class Worker:
    """The thread, with what all queues in front of it share."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="langevin-serve")

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, function, *arguments)

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


class Batches(Generic[Item]):
    """A queue in front of `answer_all`, which answers several items at once."""

    def __init__(
        self,
        name: str,
        worker: Worker,
        answer_all: Callable[[Sequence[Item]], Sequence[bytes]],
        most: int = 1,
        size: Callable[[Item], int] = lambda item: 1,
    ) -> None:
        self.name, self.worker, self.answer_all = name, worker, answer_all
        self.most, self.size = most, size
        self.waiting: deque[tuple[Item, asyncio.Future[bytes]]] = deque()
        self.task: asyncio.Task[None] | None = None
        self.window = WINDOW

    @property
    def length(self) -> int:
        """Requests that wait."""
        return len(self.waiting)

    async def ask(self, item: Item) -> bytes:
        """The answer to this item, which may be computed together with others."""
        self.worker.limits.check_waiting(len(self.waiting))
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.waiting.append((item, answer))
        self.worker.metrics.queue(self.name, len(self.waiting))
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self.work())
        return await answer

    async def work(self) -> None:
        """Batch after batch until nothing waits."""
        while self.waiting:
            if self.most > 1:
                await asyncio.sleep(self.window)
            batch = self.take()
            self.worker.metrics.queue(self.name, len(self.waiting))
            if batch:
                started = time.perf_counter()
                await self.answer(batch)
                alone = len(batch) == 1 and not self.waiting
                spent = time.perf_counter() - started
                self.window = WINDOW if alone else min(LONGEST, SHARE * spent)

    def take(self) -> list[tuple[Item, asyncio.Future[bytes]]]:
        """The first that wait, as many as fit; one in any case. Who has gone is left out."""
        batch, room = list[tuple[Item, asyncio.Future[bytes]]](), self.most
        while self.waiting and (not batch or self.size(self.waiting[0][0]) <= room):
            item, answer = self.waiting.popleft()
            if not answer.done():
                batch.append((item, answer))
                room -= self.size(item)
        return batch

    async def answer(self, batch: list[tuple[Item, asyncio.Future[bytes]]]) -> None:
        """Answer all; where the batch fails, one by one, so that a bad item harms no other."""
        self.worker.metrics.batch(self.name, len(batch))
        try:
            found = await self.worker.run(self.answer_all, [item for item, _ in batch])
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    await self.answer([one])
            elif not batch[0][1].done():
                batch[0][1].set_exception(error)
            return
        for (_, answer), result in zip(batch, found, strict=True):
            if not answer.done():  # the client has gone
                answer.set_result(result)
