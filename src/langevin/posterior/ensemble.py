"""All samples of a posterior at once: their weights side by side, one computation, a carried state for each."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from ..errors import LangevinError
from ..models.captioner import Captioner
from ..models.language_model import LanguageModel
from ..models.stacked import StackedLanguageModel, on_tensors
from ..models.stacked_captioner import StackedCaptioner
from ..models.vmapped import vmappable
from ..store.samples import Sample, SampleStore
from ..store.weights import named_alike, weights
from .average import refuse_few_classes

Source = Sample | Mapping[str, Tensor] | nn.Module
PLANS = ("auto", "batched", "loop")

DIRECT: dict[type[nn.Module], Callable[[Any, Mapping[str, Tensor]], Any]] = {
    LanguageModel: StackedLanguageModel, Captioner: StackedCaptioner,
}
"""Models with a form of their own for stacked weights, made from (model, {name: [S, …]}): its methods take what those
of the model take and give the same with an axis of samples in front. Other models go through vmap."""

FEW_POSITIONS = 16
"""Rows × time up to which the batched plan is taken. Beyond, torch's fused kernels over one sample after the other are
as fast or faster, and hold the outputs of one sample only (`benchmarks/ensembles.py`)."""


@dataclass(frozen=True)
class EnsembleOutput:
    """What all samples together say, what each says if that was asked for, and their states."""

    log_probs: Tensor
    """log 1/S Σ p(·|x, θ_s)."""
    carry: Any
    """The state of every sample, samples first, for the next call; None if the model carries none."""
    each: Tensor | None
    """log p(·|x, θ_s), samples first."""


class Ensemble:
    """S samples of the weights of one model, run as one.

    `samples` is a store, of which all are taken, or samples (such as `SampleStore.select` gives), dicts of tensors, or
    modules. Weights stay in memory, on the device of the model, if they fit into `memory` bytes (half of what is free,
    unless given); otherwise each call reads and runs one chunk of samples after the other.

    `plan` "batched" multiplies by the weights of all samples at once, "loop" runs sample after sample through torch's
    fused kernels, "auto" takes the faster of the two by the shape of the input. They agree but for rounding.

    >>> model = LanguageModel(9, cell="lstm", embed=4, hidden=4, layers=1)
    >>> ensemble = Ensemble(model, [model, model])
    >>> first = ensemble.log_probs(torch.tensor([[1, 2, 3]]))
    >>> second = ensemble.log_probs(torch.tensor([[4]]), carry=first.carry)
    >>> second.log_probs.shape
    torch.Size([1, 1, 9])
    """

    def __init__(
        self, model: nn.Module, samples: SampleStore | Iterable[Source], *, memory: int | None = None,
        plan: str = "auto",
    ) -> None:
        if plan not in PLANS:
            raise LangevinError(f"plan must be one of {', '.join(PLANS)}, got {plan!r}")
        self.sources = list[Source](samples.read() if isinstance(samples, SampleStore) else samples)
        if not self.sources:
            raise LangevinError("an ensemble needs at least one sample, got none; train longer or discard fewer")
        self.model, self.plan, self.twin = model, plan, vmappable(model)
        tensors = weights(model)
        self.shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        self.aliases = {name for name, _ in named_tensors(model, True)} - set(tensors)  # other names of tied weights
        self.one_by_one: set[str] = set()  # methods of the model that vmap cannot run
        self.size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        self.chunks = split_samples(len(self.sources), self.size, free_memory(model) // 2 if memory is None else memory)
        self._loaded = _Chunk(self, self.sources) if len(self.chunks) == 1 else None
        if self._loaded is None:  # all must fit the model before the first prediction, not in the middle of it
            for number, source in enumerate(self.sources):
                self.tensors_of(source, number)

    def __len__(self) -> int:
        return len(self.sources)

    def tensors_of(self, source: Source, number: int) -> Mapping[str, Tensor]:
        """The weights of one sample, refused if names or shapes are not those of the model."""
        if isinstance(source, Sample):
            tensors: Mapping[str, Tensor] = source.load()
        else:
            tensors = weights(source) if isinstance(source, nn.Module) else source
        tensors = {name: tensor for name, tensor in tensors.items() if name not in self.aliases}
        tensors = named_alike(tensors, self.shapes)
        got = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if got != self.shapes:
            name = min(name for name in self.shapes | got if self.shapes.get(name) != got.get(name))
            label = source.path if isinstance(source, Sample) else f"sample {number}"
            raise LangevinError(
                f"expected samples of one shape, that of the model: {name} is {got.get(name, 'absent')} in {label}, "
                f"{self.shapes.get(name, 'absent')} in the model; use samples of this model only"
            )
        return tensors

    @torch.no_grad()
    def __call__(self, *inputs: Any, carry: Any = None, method: str = "forward", **options: Any) -> Any:
        """What the model returns for these inputs, every tensor with an axis of samples in front.

        `inputs` and `options` are the same for all samples; `carry`, samples first, follows the inputs if it is given.
        `method` names what to call instead of `forward`.
        """
        pieces = list(self._run(inputs, carry, method, options))
        return pieces[0] if len(pieces) == 1 else on_tensors(lambda *parts: torch.cat(parts), *pieces)

    @torch.no_grad()
    def log_probs(self, *inputs: Any, carry: Any = None, each: bool = False, **options: Any) -> EnsembleOutput:
        """log p of the classes on the last axis of the model's (first) output, averaged over the samples.

        With `each` those of all samples are kept too; without, a loop over samples holds one of them at a time.
        """
        return self._average(of_classes, self._run(inputs, carry, "forward", options), each)

    @torch.no_grad()
    def score(self, *inputs: Any, targets: Tensor, carry: Any = None, **options: Any) -> EnsembleOutput:
        """log p of the observed targets alone, averaged and of each sample."""

        def of_targets(logits: Tensor) -> Tensor:
            wanted = targets.to(logits.device).expand(len(logits), *targets.shape)
            return -F.cross_entropy(logits.flatten(0, -2), wanted.flatten(), reduction="none").view(wanted.shape)

        return self._average(of_targets, self._run(inputs, carry, "forward", options), True)

    def _average(self, log_p: Callable[[Tensor], Tensor], results: Iterator[Any], each: bool) -> EnsembleOutput:
        log_sum, kept, carries = None, [], []
        for result in results:
            logits, *after = result if isinstance(result, tuple) else (result,)
            piece = log_p(logits)
            carries += after[:1]
            kept += [piece] if each else []
            total = piece[0] if len(piece) == 1 else piece.logsumexp(0)
            log_sum = total if log_sum is None else torch.logaddexp(log_sum, total)
        assert log_sum is not None
        carry = on_tensors(join, *carries) if carries else None
        return EnsembleOutput(log_sum - math.log(len(self)), carry, join(*kept) if each else None)

    def _run(self, inputs: tuple[Any, ...], carry: Any, method: str, options: dict[str, Any]) -> Iterator[Any]:
        """Results with samples first: of a whole chunk by the batched plan, else of one sample after the other."""
        check_carry(carry, len(self))
        for part in self.chunks:
            chunk = self._loaded or _Chunk(self, self.sources[part])
            before = carry if carry is None or self._loaded else on_tensors(itemgetter(part), carry)
            refused = False
            if self.plan == "batched" or (self.plan == "auto" and method not in self.one_by_one and few(inputs)):
                try:
                    yield chunk.at_once(inputs, before, method, options)
                    continue
                except _NoWay as error:
                    if self.plan == "batched":
                        raise LangevinError(f"vmap cannot run this model ({error}); take plan='auto'") from error
                    refused = True
            for number, member in enumerate(chunk.members()):
                state = () if before is None else (on_tensors(Tensor.contiguous, on_tensors(itemgetter(number), before)),)
                yield on_tensors(lambda t: t[None], getattr(member, method)(*inputs, *state, **options))
            if refused:  # only now: had the inputs been wrong, the loop would have failed as well
                self.one_by_one.add(method)


class _NoWay(Exception):
    """vmap failed."""


class _Chunk:
    """Stacked weights of some samples, and the two ways to run them."""

    def __init__(self, ensemble: Ensemble, sources: list[Source]) -> None:
        self.model, self.twin, self.samples = ensemble.model, ensemble.twin, len(sources)
        named = {name: tensor for name, tensor in named_tensors(self.model) if name in ensemble.shapes}
        self.stack = {name: tensor.new_empty(self.samples, *tensor.shape) for name, tensor in named.items()}
        for number, source in enumerate(sources):
            for name, tensor in ensemble.tensors_of(source, number).items():
                self.stack[name][number] = tensor.detach()
        owner = {id(tensor): name for name, tensor in named.items()}
        every = {name: self.stack[owner[id(t)]] for name, t in named_tensors(self.model, True) if id(t) in owner}
        rule = DIRECT.get(type(self.model))
        self.direct = rule(self.model, every) if rule else None
        self._members: list[nn.Module] = []

    def members(self) -> list[nn.Module]:
        """A module for each sample whose weights are slices of the stack."""
        if not self._members:
            for number in range(self.samples):
                instead: dict[int, Any] = {}
                for name, tensor in named_tensors(self.model):
                    if name in self.stack:
                        weight = self.stack[name][number]
                        if isinstance(tensor, nn.Parameter):  # of frozen weights torch.matmul makes many small products
                            weight = nn.Parameter(weight, requires_grad=tensor.requires_grad)
                        instead[id(tensor)] = weight
                self._members.append(copy.deepcopy(self.model, instead).eval())
        return self._members

    def at_once(self, inputs: tuple[Any, ...], carry: Any, method: str, options: dict[str, Any]) -> Any:
        """The batched result, by the model's own stacked form or by vmap."""
        if hasattr(self.direct, method):
            return getattr(self.direct, method)(*inputs, *(() if carry is None else (carry,)), **options)

        def one(stack: dict[str, Tensor], *before: Any) -> Any:
            return functional_call(_Method(self.twin, method), stack, (*inputs, *before), options)

        stack = {f"model.{name}": tensor for name, tensor in self.stack.items()}
        try:
            with warnings.catch_warnings():  # what vmap itself would do in a loop is better done in ours
                warnings.filterwarnings("error", "There is a performance drop")
                return vmap(one)(stack) if carry is None else vmap(one)(stack, carry)
        except (RuntimeError, ValueError, TypeError, UserWarning, LangevinError) as error:
            raise _NoWay(str(error)) from error


class _Method(nn.Module):
    """Calls a method of the model, as `functional_call` only knows forward."""

    def __init__(self, model: nn.Module, method: str) -> None:
        super().__init__()
        self.model, self.method = model, method

    def forward(self, *inputs: Any, **options: Any) -> Any:
        return getattr(self.model, self.method)(*inputs, **options)


def of_classes(logits: Tensor) -> Tensor:
    refuse_few_classes(logits[0])  # samples come first
    return torch.log_softmax(logits, -1)


def few(inputs: tuple[Any, ...]) -> bool:
    """The rule for "auto": tokens count one by one, vectors of features whole."""
    for x in inputs:
        if isinstance(x, Tensor):
            return (x.numel() // max(x.shape[-1], 1) if x.is_floating_point() else x.numel()) <= FEW_POSITIONS
    return False


def join(*parts: Tensor) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def check_carry(carry: Any, samples: int) -> None:
    """Every tensor of the state must have the samples first."""

    def check(part: Tensor) -> Tensor:
        if part.dim() == 0 or len(part) != samples:
            raise LangevinError(
                f"expected the state of {samples} samples, samples first, got {tuple(part.shape)}; "
                "pass the carry that this ensemble returned"
            )
        return part

    on_tensors(check, carry)


def named_tensors(model: nn.Module, every: bool = False) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers by name; with `every`, tied ones under each of their names."""
    yield from model.named_parameters(remove_duplicate=not every)
    yield from model.named_buffers(remove_duplicate=not every)


def split_samples(samples: int, size: int, memory: int) -> list[slice]:
    """Chunks of samples that fit into memory beside the one that is being read; at least one sample each."""
    at_once = min(samples, max(1, memory // max(size, 1) - 1))
    pieces = math.ceil(samples / at_once)
    borders = [samples * i // pieces for i in range(pieces + 1)]
    return [slice(a, b) for a, b in pairwise(borders)]


def free_memory(model: nn.Module) -> int:
    """Bytes that can be had on the device of the model."""
    device = next((tensor.device for _, tensor in named_tensors(model)), torch.device("cpu"))
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # not Linux: all there is
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**32
