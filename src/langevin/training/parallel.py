"""The processes that torchrun started for one chain, and all that they say to each other.

Each has the whole data, the whole model and, as noise is a function of seed, parameter, element and
step, the same noise: their weights stay equal to the bit without being sent. They share the rows of
each batch and the items of validation. What is sent is the gradient, summed in one flat buffer once
a step; what people and clocks ask of one process travels with it, so that all stop, or save, after
the same step. Decisions are the first one's, which alone writes.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import secrets
import time
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore  # type: ignore[attr-defined]  # torch does not list it
from torch.distributed.rendezvous import rendezvous

from ..errors import LangevinError
from ..process import launcher

T = TypeVar("T")
ROOM, PATIENCE, POLL = "langevin-room", 300.0, 0.05
"""Where the first process says in which room it is; seconds in which others look for it, and
between two looks."""
STOP, SAVE = 0, 1
"""What a process may ask of all."""


class LostProcess(LangevinError):
    """Another process of the same chain is gone."""


class Group(Protocol):
    """Those who train one chain. All of them call each method, in the same order."""

    number: int
    size: int

    def sum_gradients(self, parameters: Sequence[Tensor], loss: float) -> float:
        """Sum the gradients over all processes, in place; returns the sum of the losses."""

    def agree(self, what: int, asked: bool) -> bool:
        """Whether anybody asked for it; others hear what is asked here with the next gradient."""

    def decide(self, value: T) -> T:
        """What the first says."""

    def gather(self, own: T) -> list[T]:
        """What each says, in the order of their numbers."""


class Alone:
    """One process: there is nobody to talk to."""

    number, size = 0, 1

    def sum_gradients(self, parameters: Sequence[Tensor], loss: float) -> float:
        return loss

    def agree(self, what: int, asked: bool) -> bool:
        return asked

    def decide(self, value: T) -> T:
        return value

    def gather(self, own: T) -> list[T]:
        return [own]


class Processes:
    """Several, connected by torch.distributed: gloo between processors, nccl between GPUs."""

    def __init__(self) -> None:
        self.number, self.size = dist.get_rank(), dist.get_world_size()
        self.asked, self.heard = [False, False], [False, False]
        self.parent = os.getppid()
        self.buffer = torch.empty(0)

    def sum_gradients(self, parameters: Sequence[Tensor], loss: float) -> float:
        trained = [p for p in parameters if p.grad is not None]
        grads = [p.grad for p in trained if p.grad is not None]
        refuse_lazy_rows(grads)
        sizes = [grad.numel() for grad in grads]
        if len(self.buffer) != sum(sizes) + 3:
            self.buffer = torch.empty(sum(sizes) + 3, device=grads[0].device)
        pieces = torch.split(self.buffer, [*sizes, 3])
        views = [piece.view_as(p) for piece, p in zip(pieces[:-1], trained, strict=True)]
        torch._foreach_copy_(views, grads)
        pieces[-1].copy_(torch.tensor([loss, *self.asked]))
        with talking():
            dist.all_reduce(self.buffer)
        for parameter, view in zip(trained, views, strict=True):
            parameter.grad = view
        total, *heard = pieces[-1].tolist()
        self.heard = [count > 0 for count in heard]
        return float(total)

    def agree(self, what: int, asked: bool) -> bool:
        orphaned = what == STOP and os.getppid() != self.parent  # torchrun was killed outright
        self.asked[what] = asked or orphaned
        heard, self.heard[what] = self.heard[what], False
        return heard

    def decide(self, value: T) -> T:
        box = [value]
        with talking():
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, own: T) -> list[T]:
        box: list[Any] = [None] * self.size
        with talking():
            dist.all_gather_object(box, own)
        return box


def launched() -> int:
    """How many processes torchrun started together; 1 without it."""
    return 1 if launcher() is None else int(os.environ.get("WORLD_SIZE", "1"))


@cache
def meeting() -> tuple[Any, int, int]:
    """A table in which all processes of this attempt write; our number; how many we are.

    torchrun keeps one table for all its attempts, with what the dead wrote, and its machines may
    count attempts differently. So the first names a room of its own, and lets in those that knock;
    a room where nobody answers is an old one.
    """
    table, number, size = next(rendezvous("env://"))
    own = secrets.token_hex(8)
    if number == 0:
        table.set(ROOM, own)
        for other in range(1, size):
            key = f"{own}/{other}"
            table.set(f"{key}/{table.get(key).decode()}", "come in")
        return PrefixStore(own, table), number, size
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        room = table.get(ROOM).decode()
        table.set(f"{room}/{number}", own)
        if table.check([f"{room}/{number}/{own}"]):
            return PrefixStore(room, table), number, size
        time.sleep(POLL)
    raise RuntimeError(f"process 0 did not answer within {PATIENCE:g} seconds")


def find_group() -> Group:
    """The processes that torchrun started; alone where there is one."""
    if launched() == 1:
        return Alone()
    if not dist.is_initialized():
        with talking():
            store, number, size = meeting()
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            dist.init_process_group(backend, store=store, rank=number, world_size=size)
            atexit.register(leave)
    return Processes()


def leave() -> None:
    """End the threads that talk; Python may abort a process that ends while they run."""
    with contextlib.suppress(RuntimeError):
        dist.destroy_process_group()


def is_first_to_speak() -> bool:
    """Whether nobody else has told the user of an error yet: one line is enough for all."""
    if launched() == 1:
        return True
    try:
        return bool(meeting()[0].add("langevin-spoke", 1) == 1)
    except RuntimeError:  # the table went with the process that kept it
        return True


@contextlib.contextmanager
def talking() -> Iterator[None]:
    """What torch says of a broken connection, in our words."""
    try:
        yield
    except RuntimeError as error:
        said = re.sub(r"^\[.*?\.cc:\d+\] ", "", str(error)).split(". ")[0].splitlines() or ["no reason given"]
        raise LostProcess(
            f"another process of this run ended, or cannot be reached ({said[0]:.200}); the run stands at its last "
            f"checkpoint: go on with 'langevin resume' under torchrun, or let torchrun start it anew by --max-restarts"
        ) from None


def refuse_lazy_rows(grads: Sequence[Tensor]) -> None:
    """Rows of an embedding that are brought to date when read would be so at other steps in each
    process."""
    if any(grad.is_sparse for grad in grads):
        raise LangevinError(
            "expected dense gradients where several processes train one chain, got those of a sparse "
            "embedding; build it with sparse=False"
        )


def refuse_together(what: str) -> None:
    if launched() > 1:
        raise LangevinError(
            f"expected one process for {what}, torchrun started {launched()}; start it without torchrun"
        )


def expect_alike(group: Group, facts: dict[str, Any]) -> None:
    """Refuse processes that read other data, or are of other versions, than the first."""
    first, *others = group.gather(facts)
    for number, other in enumerate(others, 1):
        for key, value in first.items():
            if other.get(key) != value:
                raise LangevinError(
                    f"expected the same {key} in all processes, process 0 has {value!s:.80}, process {number} "
                    f"has {other.get(key)!s:.80}; give every machine the same data and versions"
                )


def expect_equal_weights(group: Group, weights: Sequence[Tensor], step: int) -> None:
    """By a checksum: the noise is the same everywhere, so the weights are."""
    if group.size == 1:
        return
    sums = group.gather(checksum_of(weights))
    different = [number for number, own in enumerate(sums) if own != sums[0]]
    if different:
        raise LangevinError(
            f"the weights of process {different[0]} are not those of process 0 at step {step}: a fault of a machine, "
            f"or machines that round differently; the run stands at its last checkpoint, go on with 'langevin resume'"
        )


def checksum_of(tensors: Sequence[Tensor]) -> int:
    code = 0
    for tensor in tensors:
        code = zlib.crc32(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data, code)
    return code
