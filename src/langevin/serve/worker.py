"""One thread that computes, and queues that join what waits for it into batches.

The event loop only waits. All models share the thread, so that torch's own threads are never asked
for by two at once. A batch is what has come by the time the thread is free, at most `most` items;
when nothing waits, a request is held back for WINDOW seconds at most.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from .metrics import Metrics
from .problems import Problem

WINDOW = 0.001
Item = TypeVar("Item")
Answer = TypeVar("Answer")
T = TypeVar("T")


class Worker:
    """The thread."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="langevin-serve")

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, function, *arguments)

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


class Batches(Generic[Item, Answer]):
    """A queue in front of `answer_all`, which answers several items at once."""

    def __init__(
        self,
        name: str,
        worker: Worker,
        answer_all: Callable[[Sequence[Item]], Sequence[Answer]],
        metrics: Metrics,
        most: int,
        longest: int,
    ) -> None:
        self.name, self.worker, self.answer_all = name, worker, answer_all
        self.metrics, self.most, self.longest = metrics, most, longest
        self.waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self.task: asyncio.Task[None] | None = None

    async def ask(self, item: Item) -> Answer:
        """The answer to this item, which may be computed together with others."""
        if len(self.waiting) >= self.longest:
            raise Problem(503, f"at most {self.longest} requests in the queue", "more", "try again")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.waiting.append((item, answer))
        self.metrics.queue(self.name, len(self.waiting))
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self.work())
        return await answer

    async def work(self) -> None:
        """Batch after batch until nothing waits."""
        await asyncio.sleep(WINDOW)
        while self.waiting:
            batch = [self.waiting.popleft() for _ in range(min(self.most, len(self.waiting)))]
            batch = [(item, answer) for item, answer in batch if not answer.done()]
            self.metrics.queue(self.name, len(self.waiting))
            if batch:
                await self.answer(batch)

    async def answer(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        """Answer all; where the batch fails, one by one, so that a bad item harms no other."""
        self.metrics.batch(self.name, len(batch))
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
