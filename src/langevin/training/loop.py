"""The only training loop: gradient, clip, sampler step, samples and validation on a schedule, checkpoints.

Everything that changes along the way is in `Trainer` and in the checkpoint; everything else is a function of the recipe
and the step. So a run that was killed anywhere goes on from its last checkpoint and ends with the same bits.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..errors import Diverged, Interrupted, LangevinError
from ..posterior.selection import choose_last
from ..process import physical_memory, prepare_device
from ..recipe import Recipe
from ..recipe.schedule import Pace
from ..samplers import SAMPLERS
from ..store.folder import RunFolder
from ..store.manifest import HistoryLine, RunProgress
from ..store.writer import RunWriter
from ..tasks.base import Task
from .clipping import Clipper
from .jobs import GRACE, PARENT
from .state import Parts, TrainingState


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
    trained = [p for p in model.parameters() if p.requires_grad]
    sampler = SAMPLERS[name](trained, num_data=task.num_data, seed=recipe.run.seed, **settings)
    if settings.get("prior_var") is not None:
        for parameter, mean in task.prior_means().items():
            sampler.set_prior_mean(model.get_parameter(parameter), mean)
    return Parts(device, model, sampler, Pace(recipe.run, settings["lr"], settings["temperature"],
                                              task.batches_per_epoch))


LARGEST_KEPT = 256 * 2**20
"""Bytes of the log-probabilities of validation that are kept for the choice of the last samples."""
TELLING = 200
"""Items of validation below which it does not end a plateau: they tell too little to stop by."""
NO_BETTER = 2
"""Samples in the fall of the rate that do not improve the average, after which it stops."""


class Trainer(TrainingState):
    """One run of one task, in memory; the only one that writes in its folder, until `run` ends."""

    def __init__(self, folder: RunFolder, task: Task, parts: Parts | None = None) -> None:
        self.folder, self.task, self.recipe = folder, task, folder.recipe
        run = self.recipe.run
        super().__init__(parts or build(self.recipe, task), Clipper(run.clip, run.clip_norm),
                         keeps_mean=run.sample == "mean")
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        # Children wait for those of a parent that was killed, which end by themselves after the batch at hand.
        self.writer = RunWriter(folder, GRACE if PARENT in os.environ else 0.0)
        self.store = self.writer.store
        self.evaluating = False
        """True while nothing changes, so that an interruption may cut in."""
        loaded = self.writer.load()
        if loaded is not None:
            self.unpack(*loaded)
        self.said: list[Tensor | None] = self.writer.log_probs() if self.pace.has_plateau else []
        """Log-probabilities of validation of each sample; None where they were too many to keep."""

    def run(
        self, on_step: Callable[[Trainer], None] = lambda _: None, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Train to the end. When `stop` (asked after every batch) says yes, save and raise Interrupted."""
        with self.writer.held():
            self._run(on_step, stop)

    def _run(self, on_step: Callable[[Trainer], None], stop: Callable[[], bool]) -> None:
        saved = started = time.monotonic()
        before = self.seconds
        try:
            while not self.finished and not stop():
                if not self._record_is_due():
                    self._train_one_batch()
                if self._record_is_due():
                    self._record()
                now = time.monotonic()
                self.seconds = before + now - started
                if now - saved >= 60 * self.recipe.run.checkpoint_minutes:
                    self.save()
                    saved = now
                on_step(self)
        except KeyboardInterrupt:  # raised on purpose while evaluating; the record is made again on resuming
            self.evaluating = False
        self.save()
        if not self.finished:
            raise Interrupted

    def _train_one_batch(self) -> None:
        epoch, index = divmod(self.step, self.task.batches_per_epoch)
        for group in self.sampler.param_groups:
            group["lr"], group["temperature"] = self.pace.lr_at(self.step), self.pace.temperature_at(self.step)
        torch.manual_seed(self.recipe.run.seed * 1_000_003 + self.step)  # dropout masks depend on the step alone
        self.model.train()
        self.sampler.zero_grad()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.run.precision == "bfloat16"):
            loss, carry = self.task.loss(self.model, epoch, index, self.carry)
        value = loss.item()
        if not math.isfinite(value):
            raise Diverged(
                f"the loss became {value} at step {self.step} (epoch {epoch + 1}); the run stands at its last "
                f"checkpoint with {len(self.store)} samples. Lower lr or temperature, or set clip=norm, and train anew"
            )
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.clipper.clip_(self.trained)
        self.sampler.step()
        if self.mean is not None:
            self.mean.update()
        self.carry, self.step = carry, self.step + 1
        self.losses.append(value)

    def _record_is_due(self) -> bool:
        return self.pace.is_record(self.step) and self.recorded < self.step

    def _record(self) -> None:
        """Validate, keep the sample if it is one, and note a line of the learning curve."""
        if self.pace.has_plateau and self.step == self.pace.hold:
            self.writer.save_plateau(*self._pack())
        self.evaluating = True
        model = self.model if self.mean is None else self.mean.module
        model = self.task.as_sample(model) if self.pace.is_sample(self.step) else model
        log_probs = self.task.log_probs(model, "valid")
        self.evaluating = False
        valid, average = self.task.scores(log_probs, "valid").present(), None
        if len(log_probs) >= TELLING and self._is_worse_on_plateau(valid[self.task.score]):
            self.pace = self.pace.turn(self.step)
        epoch, temperature = self.step / self.task.batches_per_epoch, self.pace.temperature_at(self.step - 1)
        if self.pace.is_sample(self.step):
            self._keep(model, log_probs, epoch, temperature)
            average = self.task.scores(self.running.value(), "valid").present()
        self.history.append(HistoryLine(
            step=self.step, epoch=epoch, lr=self.pace.lr_at(self.step - 1), temperature=temperature,
            train_loss=sum(self.losses) / max(len(self.losses), 1), valid=valid, average=average,
        ))
        self.losses, self.recorded = [], self.step
        self.stopped_early = self._out_of_patience()
        if self.finished:
            self._choose()
        self.save()

    def _is_worse_on_plateau(self, score: float) -> bool:
        """Whether validation has turned, while the rate was full: it then falls from here."""
        if not self.pace.has_plateau or self.step >= self.pace.hold:
            return False
        return score > min((line.valid[self.task.score] for line in self.history), default=math.inf)

    def _keep(self, model: nn.Module, log_probs: Tensor, epoch: float, temperature: float) -> None:
        """Store a sample; beside it what it says of validation, where the last of them are chosen by that."""
        places = len(self.pace.places)
        said = log_probs.float().cpu() if 0 < places * log_probs.numel() * 4 <= LARGEST_KEPT else None
        about = {"running_mean": True} if self.mean is not None else {}
        self.writer.append(model, self.step, said, epoch=epoch, temperature=temperature, **about)
        self.running.add(log_probs)
        if self.pace.has_plateau:
            self.said.append(said)

    def _out_of_patience(self) -> bool:
        """No better average on validation for some samples: of all of them, or of the last j of a plateau."""
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
        """How many of the first so many samples to average, from the last back, and the score of that."""
        return choose_last(
            self._known()[:samples], lambda log_probs: self.task.scores(log_probs, "valid").present()[self.task.score]
        )

    def _choose(self) -> None:
        if known := self._known():
            self.writer.remember(*self._last(len(known)))

    def _pack(self) -> tuple[dict[str, Tensor], RunProgress]:
        return self.pack(self.task.num_data, tuple(sample.record() for sample in self.store.samples))

    def save(self) -> None:
        """Write all that the rest of the run depends on, as one file, atomically."""
        if not self.writer.lock.busy:
            with self.writer.held():
                self.save()
            return
        self.writer.save(*self._pack())
