"""The network that langevin samples, trained as one network: an optimiser, a schedule, a peak
rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from langevin import RunningMean
from langevin.models.language_model import LanguageModel
from langevin.samplers.schedules import Schedule, plateau, sampling_places
from langevin.tasks.language_model import LanguageModelTask

from .records import clocked
from .text_scores import equal

Weights = dict[str, Tensor]
CLIP, HOLD = 1.0, 0.75
MEAN_OVER = 500
"""Steps at the end over which the running mean (decay .99) is kept."""


@dataclass(frozen=True)
class Plan:
    """How one network is trained."""

    optimiser: str
    schedule: str
    """cosine: from the peak to zero along half a cosine; plateau: constant for three quarters, then
    along a line to zero, and at the end the running mean of the weights."""
    rate: float
    steps: int
    seed: int


@dataclass(frozen=True)
class Trained:
    """The weights at the end, those along the way, and what they cost."""

    end: Weights
    snapshots: list[Weights]
    seconds: float


def make_optimiser(name: str, weights: Sequence[nn.Parameter], rate: float, num_data: int
                   ) -> torch.optim.Optimizer:  # fmt: skip
    """With the weight decay that is its own: of Adam decoupled, else a prior of variance 1."""
    if name == "adam":
        return torch.optim.AdamW(weights, lr=rate, weight_decay=0.01)
    if name == "rmsprop":
        return torch.optim.RMSprop(weights, lr=rate, alpha=0.99, weight_decay=1 / num_data)
    return torch.optim.SGD(weights, lr=rate, momentum=0.9, weight_decay=1 / num_data)


def schedule_of(plan: Plan) -> Schedule:
    """Without a warm-up: after 300 steps these networks were .09 nats a byte behind with one."""
    falling = plateau(plan.steps, HOLD, floor=0.0)

    def factor(step: int) -> float:
        if plan.schedule == "cosine":
            return 0.5 * (1 + math.cos(math.pi * step / plan.steps))
        return falling(step)

    return factor


def train(task: LanguageModelTask, plan: Plan) -> Trained:
    """One run; a seed gives first weights, and masks if there is dropout."""
    torch.manual_seed(plan.seed)
    model = task.build_model()
    weights = [p for p in model.parameters() if p.requires_grad]
    optimiser = make_optimiser(plan.optimiser, weights, plan.rate, task.num_data)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, schedule_of(plan))
    mean, carry, snapshots = RunningMean(model), None, list[Weights]()
    averaged, places = plan.schedule == "plateau", set(sampling_places(plan.steps))
    with clocked() as clock:
        for step in range(plan.steps):
            epoch, index = divmod(step, task.batches_per_epoch)
            loss, carry = task.loss(model, epoch, index, carry)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(weights, CLIP)
            optimiser.step()
            scheduler.step()
            if averaged and step >= plan.steps - MEAN_OVER:
                mean.update()
            if step + 1 in places:
                snapshots.append(copied(model))
    return Trained(copied(mean.module if averaged else model), snapshots, clock.cpu)


def train_several(task: LanguageModelTask, plan: Plan, runs: int) -> Trained:
    """Independent short runs that share the budget of one."""
    short = replace(plan, steps=plan.steps // runs)
    each = [train(task, replace(short, seed=plan.seed * 1000 + run)) for run in range(runs)]
    seconds = sum(one.seconds for one in each)
    return Trained(each[-1].end, [one.end for one in each], seconds)


def copied(model: nn.Module) -> Weights:
    return {name: weight.detach().clone() for name, weight in model.state_dict().items()}


class NetworksPredictor:
    """Some networks of one shape, averaged."""

    def __init__(self, task: LanguageModelTask, weights: Sequence[Weights]) -> None:
        self.models = [loaded(task, own) for own in weights]
        self.size, self.sizes = len(task.vocabulary), [len(weights)]
        self.weights = equal(len(weights))
        self.carries: list[list[tuple[Tensor, ...]]] = []

    def begin(self, befores: Sequence[Tensor]) -> None:
        self.carries = [self.beginnings(model, befores) for model in self.models]

    def beginnings(self, model: LanguageModel, befores: Sequence[Tensor]
                   ) -> list[tuple[Tensor, ...]]:  # fmt: skip
        """The states after what stands before each row."""
        nothing = model(torch.zeros(1, 1, dtype=torch.long))[1]
        zero = [tuple(torch.zeros_like(part) for part in layer) for layer in nothing]
        each = [model(before[None])[1] if len(before) else zero for before in befores]
        return [tuple(torch.cat(parts, 1) for parts in zip(*layers, strict=True))
                for layers in zip(*each, strict=True)]

    def foresee(self, tokens: Tensor) -> Tensor:
        said = []
        for number, model in enumerate(self.models):
            logits, self.carries[number] = model(tokens, self.carries[number])
            said.append(torch.log_softmax(logits, -1))
        return torch.stack(said)


def loaded(task: LanguageModelTask, weights: Weights) -> LanguageModel:
    model = task.build_model()
    model.load_state_dict(weights)
    return model.eval()
