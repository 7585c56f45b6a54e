"""Everything that changes along a training, as tensors and a record, and back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..posterior.average import LogMean
from ..recipe.schedule import Pace
from ..samplers import Sampler
from ..store.checkpoint import split_prefix
from ..store.manifest import HistoryLine, RunProgress, SampleRecord
from ..store.weights import load_weights, weights
from ..tasks.base import Carry
from ..tasks.shards import Shard
from .carries import join_carries, split_carry, unflatten_carry
from .clipping import Clipper
from .parallel import Group
from .running_mean import RunningMean


@dataclass(frozen=True)
class Parts:
    """What a run is made of, built before anything is written, so that settings which do not work
    cost nothing."""

    device: torch.device
    model: nn.Module
    sampler: Sampler
    pace: Pace
    group: Group
    """Those with whom it is trained."""
    pieces: list[Shard]
    """Of each batch, those that this process takes, one after the other."""

    @property
    def share(self) -> Shard:
        """What is ours of everything that is divided."""
        return Shard(self.group.number, self.group.size)

    @property
    def trained(self) -> list[Tensor]:
        return [p for p in self.model.parameters() if p.requires_grad]


class TrainingState:
    """Where a training stands; the rest of it is a function of this, the recipe and the step."""

    def __init__(self, parts: Parts, clipper: Clipper, *, keeps_mean: bool) -> None:
        self.parts, self.group = parts, parts.group
        self.device, self.model, self.sampler, self.pace = parts.device, parts.model, parts.sampler, parts.pace
        self.clipper = clipper
        self.mean = RunningMean(self.model) if keeps_mean else None
        """Of the weights of all steps so far, where samples are such means."""
        self.step, self.recorded, self.stopped_early = 0, 0, False
        self.carries: list[Carry] = [None] * len(parts.pieces)
        self.running = LogMean()
        self.history: list[HistoryLine] = []
        self.losses: list[float] = []
        self.seconds = 0.0

    @property
    def finished(self) -> bool:
        return self.stopped_early or (self.step >= self.pace.total and self.recorded >= self.step)

    def pack(
        self, num_data: int, samples: tuple[SampleRecord, ...]
    ) -> tuple[dict[str, Tensor], RunProgress]:
        """What a checkpoint holds: with the state of the rows of all processes."""
        carry = join_carries([own for each in self.group.gather(self.carries) for own in each])
        tensors = {f"model.{name}": tensor for name, tensor in weights(self.model).items()}
        if self.mean is not None:
            tensors |= {f"mean.{name}": tensor for name, tensor in weights(self.mean.module).items()}
        state = self.sampler.state_dict()
        for number, values in state["state"].items():
            tensors |= {f"sampler.{number}.{key}": value.contiguous() for key, value in values.items()}
        for layer, parts in enumerate(carry or ()):
            tensors |= {f"carry.{layer}.{part}": tensor.contiguous() for part, tensor in enumerate(parts)}
        if self.running.log_sum is not None:
            tensors["running"] = self.running.log_sum
        groups = [{k: v for k, v in g.items() if k != "params"} for g in state["param_groups"]]
        return tensors, RunProgress(
            step=self.step, total=self.pace.total, recorded=self.recorded, finished=self.finished,
            stopped_early=self.stopped_early, turned=self.pace.turned, clipped=self.clipper.acted,
            clip_asked=self.clipper.asked, averaged=self.running.count, groups=tuple(groups),
            losses=tuple(self.losses), history=tuple(self.history), seconds=self.seconds, num_data=num_data,
            processes=self.group.size if self.group.size > 1 else None, samples=samples,
        )

    def unpack(self, tensors: dict[str, Tensor], progress: RunProgress) -> None:
        """Stand where a checkpoint was made."""
        rooms = split_prefix(tensors)
        load_weights(self.model, rooms["model"], "the checkpoint")
        if self.mean is not None:
            load_weights(self.mean.module, rooms.get("mean", {}), "the checkpoint")
            self.mean.steps = progress.step
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in rooms.get("sampler", {}).items():
            number, key = name.split(".")
            state.setdefault(int(number), {})[key] = tensor
        groups = [
            own | saved
            for own, saved in zip(self.sampler.state_dict()["param_groups"], progress.groups, strict=True)
        ]
        self.sampler.load_state_dict({"state": state, "param_groups": groups})
        self.step, self.recorded = progress.step, progress.recorded
        self.stopped_early, self.seconds = progress.stopped_early, progress.seconds
        self.clipper.acted, self.clipper.asked = progress.clipped, progress.clip_asked
        self.history, self.losses = list(progress.history), list(progress.losses)
        self.running = LogMean(tensors.get("running"), progress.averaged)
        carry = unflatten_carry(rooms.get("carry", {}), next(self.model.parameters()).device)
        self.carries = split_carry(carry, self.parts.pieces)
        if progress.turned is not None:
            self.pace = self.pace.turn(progress.turned)
