"""The only training loop: gradient, clip, sampler step, samples and validation on a schedule,
checkpoints.

Everything that changes along the way is in `Trainer` and in the checkpoint; everything else is a
function of the recipe and the step. So a run that was killed anywhere goes on from its last
checkpoint and ends with the same bits.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..errors import Diverged, Interrupted, LangevinError
from ..posterior.selection import choose_last
from ..process import launcher, physical_memory, prepare_device
from ..recipe import Recipe
from ..recipe.schedule import Pace
from ..samplers import SAMPLERS
from ..store.folder import RunFolder
from ..store.manifest import HistoryLine, RunProgress
from ..store.samples import SampleStore
from ..store.writer import Onlooker, RunWriter
from ..tasks.base import Task
from ..tasks.shards import Shard
from .clipping import Clipper
from .gradient import fill_gradient, refuse_few_rows
from .jobs import GRACE, PARENT
from .parallel import SAVE, STOP, expect_equal_weights, find_group
from .state import Parts, TrainingState


log = logging.getLogger("langevin")
COPIES = 3
"""Of the weights, at least: themselves, their gradients, one state of the sampler."""


def refuse_oversized(recipe: Recipe, memory: int | None) -> None:
    """A model whose recurrent layers alone, in training, are more than the machine's memory."""
    needed = COPIES * 4 * recipe.model.recurrent_weights()
    if memory is not None and needed > memory:
        raise LangevinError(
            f"expected a model that fits into the {memory / 1e9:.0f} GB of memory, hidden = "
            f"{recipe.model.hidden} and layers = {recipe.model.layers} need at least "
            f"{needed / 1e9:,.0f} GB in training; lower hidden"
        )


def build(recipe: Recipe, task: Task) -> Parts:
    """Device, model, sampler and schedule of a recipe on its data."""
    device = prepare_device(recipe.run.device, recipe.run.threads)
    if device.type == "cpu":
        refuse_oversized(recipe, physical_memory())
    model = task.build_model().to(device)
    name, settings = recipe.sampler.resolved(task.num_data)
    group = find_group()
    refuse_few_rows(task, group, recipe.run.accumulate)
    pieces = Shard(group.number, group.size).divided(recipe.run.accumulate)
    trained = [p for p in model.parameters() if p.requires_grad]
    sampler = SAMPLERS[name](trained, num_data=task.num_data, seed=recipe.run.seed, **settings)
    if settings.get("prior_var") is not None:
        for parameter, mean in task.prior_means().items():
            sampler.set_prior_mean(model.get_parameter(parameter), mean)
    pace = Pace(recipe.run, settings["lr"], settings["temperature"], task.batches_per_epoch)
    return Parts(device, model, sampler, pace, group, pieces)


LARGEST_KEPT = 256 * 2**20
"""Bytes of the log-probabilities of validation that are kept for the choice of the last samples."""
TELLING = 200
"""Items of validation below which it does not end a plateau: they tell too little to stop by."""
NO_BETTER = 2
"""Samples in the fall of the rate that do not improve the average, after which it stops."""


class Trainer(TrainingState):
    """One run of one task, in memory; the only one that writes in its folder, until `run` ends.

    Where several processes train it, the first has the folder, and the others None.
    """

    def __init__(self, folder: RunFolder | None, task: Task, parts: Parts | None = None) -> None:
        self.task, self.recipe = task, task.recipe
        run = self.recipe.run
        super().__init__(parts or build(self.recipe, task), Clipper(run.clip, run.clip_norm),
                         keeps_mean=run.sample == "mean")
        # Children wait for those of a parent that was killed, which end by themselves after the
        # batch at hand.
        patience = GRACE if PARENT in os.environ or launcher() else 0.0
        self.writer = RunWriter(folder, patience) if folder else Onlooker()
        self.evaluating = False
        """True while nothing changes, so that an interruption may cut in."""
        loaded = self.group.decide(self.writer.load())
        if loaded is None:
            task.expect_beginning()
        else:
            self.unpack(*loaded)
            say_other_processes(loaded[1].processes or 1, self.group.size)
        self.said: list[Tensor | None] = (
            self.group.decide(self.writer.log_probs()) if self.pace.has_plateau else []
        )
        """Log-probabilities of validation of each sample; None where they were too many to keep."""

    @property
    def folder(self) -> RunFolder:
        """Of the process that writes."""
        assert isinstance(self.writer, RunWriter)
        return self.writer.folder

    @property
    def store(self) -> SampleStore:
        """Of the process that writes."""
        assert isinstance(self.writer, RunWriter)
        return self.writer.store

    def run(
        self, on_step: Callable[[Trainer], None] = lambda _: None, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Train to the end. When `stop` (asked after every batch) says yes, save and raise
        Interrupted."""
        with self.writer.held():
            self._run(on_step, stop)

    def _run(self, on_step: Callable[[Trainer], None], stop: Callable[[], bool]) -> None:
        saved = started = time.monotonic()
        before = self.seconds
        try:
            while not self.finished and not self.group.agree(STOP, stop()):
                if not self._record_is_due():
                    self._train_one_batch()
                if self._record_is_due():
                    self._record()
                now = time.monotonic()
                self.seconds = before + now - started
                if self.group.agree(SAVE, now - saved >= 60 * self.recipe.run.checkpoint_minutes):
                    self.save()
                    saved = now
                on_step(self)
        except KeyboardInterrupt:  # raised on purpose while evaluating; the record is made again on resuming
            self.evaluating = False
        self.save()
        if not self.finished:
            raise Interrupted

    def _train_one_batch(self) -> None:
        for group in self.sampler.param_groups:
            group["lr"], group["temperature"] = self.pace.lr_at(self.step), self.pace.temperature_at(self.step)
        value, carries = fill_gradient(self.parts, self.task, self.step, self.carries)
        if not math.isfinite(value):
            raise Diverged(
                f"the loss became {value} at step {self.step} (epoch {self.step // self.task.batches_per_epoch + 1}); "
                f"the run stands at its last checkpoint with {self.running.count} samples. Lower lr or temperature, or set clip=norm, and train anew"
            )
        self.clipper.clip_(self.parts.trained)
        self.sampler.step()
        if self.mean is not None:
            self.mean.update()
        self.carries, self.step = carries, self.step + 1
        self.losses.append(value)

    def _record_is_due(self) -> bool:
        return self.pace.is_record(self.step) and self.recorded < self.step

    def _record(self) -> None:
        """Validate, keep the sample if it is one, and note a line of the learning curve."""
        expect_equal_weights(self.group, self.parts.trained, self.step)
        if self.pace.has_plateau and self.step == self.pace.hold:
            self.writer.save_plateau(*self._pack())
        self.evaluating = self.group.size == 1  # others would wait for what we say
        model = self.model if self.mean is None else self.mean.module
        model = self.task.as_sample(model) if self.pace.is_sample(self.step) else model
        own = self.task.log_probs(model, "valid", shard=self.parts.share)
        log_probs = torch.cat(self.group.gather(own)) if self.group.size > 1 else own
        self.evaluating = False
        valid, average = self.group.decide(self.task.scores(log_probs, "valid").present()), None
        if len(log_probs) >= TELLING and self._is_worse_on_plateau(valid[self.task.score]):
            self.pace = self.pace.turn(self.step)
        epoch, temperature = self.step / self.task.batches_per_epoch, self.pace.temperature_at(self.step - 1)
        if self.pace.is_sample(self.step):
            self._keep(model, log_probs, epoch, temperature)
            average = self.group.decide(self.task.scores(self.running.value(), "valid").present())
        self.history.append(HistoryLine(
            step=self.step, epoch=epoch, lr=self.pace.lr_at(self.step - 1), temperature=temperature,
            train_loss=sum(self.losses) / max(len(self.losses), 1), valid=valid, average=average,
        ))
        self.losses, self.recorded = [], self.step
        self.stopped_early = self.group.decide(self._out_of_patience())
        if self.finished:
            self._choose()
        self.save()

    def _is_worse_on_plateau(self, score: float) -> bool:
        """Whether validation has turned, while the rate was full: it then falls from here."""
        if not self.pace.has_plateau or self.step >= self.pace.hold:
            return False
        return score > min((line.valid[self.task.score] for line in self.history), default=math.inf)

    def _keep(self, model: nn.Module, log_probs: Tensor, epoch: float, temperature: float) -> None:
        """Store a sample; beside it what it says of validation, where the last of them are chosen
        by that."""
        places = len(self.pace.places)
        said = log_probs.float().cpu() if 0 < places * log_probs.numel() * 4 <= LARGEST_KEPT else None
        about = {"running_mean": True} if self.mean is not None else {}
        self.writer.append(model, self.step, said, epoch=epoch, temperature=temperature, **about)
        self.running.add(log_probs)
        if self.pace.has_plateau:
            self.said.append(said)

    def _out_of_patience(self) -> bool:
        """No better average on validation for some samples: of all of them, or of the last j of a
        plateau."""
        patience = self.recipe.run.patience
        scores = [line.average[self.task.score] for line in self.history if line.average]
        if self.pace.has_plateau:
            patience, scores = NO_BETTER, [self._last(n)[1] for n in range(1, len(self._known()) + 1)]
        return patience is not None and bool(scores) and len(scores) - 1 - scores.index(min(scores)) >= patience

    def _known(self) -> list[Tensor]:
        """What all samples say of validation; nothing where it was too much to keep."""
        known = [said for said in self.said if said is not None]
        return known if len(known) == len(self.said) else []

    def _last(self, samples: int) -> tuple[int, float]:
        """How many of the first so many samples to average, from the last back, and the score of
        that."""
        return choose_last(
            self._known()[:samples], lambda log_probs: self.task.scores(log_probs, "valid").present()[self.task.score]
        )

    def _choose(self) -> None:
        if known := self._known():
            self.writer.remember(*self._last(len(known)))

    def _pack(self) -> tuple[dict[str, Tensor], RunProgress]:
        return self.pack(self.task.num_data, self.writer.records())

    def save(self) -> None:
        """Write all that the rest of the run depends on, as one file, atomically."""
        self.writer.save(*self._pack())


def say_other_processes(before: int, now: int) -> None:
    if before != now:
        log.warning("%d processes trained this run so far, %d go on: the results agree to rounding, the bits differ "
                    "from those of a run that keeps its number", before, now)
