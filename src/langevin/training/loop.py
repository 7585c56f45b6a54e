"""The only training loop: gradient, clip, sampler step, samples and validation on a schedule, checkpoints.

Everything that changes along the way is in `Trainer` and in the checkpoint; everything else is a function of the recipe
and the step. So a run that was killed anywhere goes on from its last checkpoint and ends with the same bits.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import Diverged, Interrupted, LangevinError
from ..posterior.average import LogMean
from ..process import physical_memory, prepare_device
from ..recipe import Recipe
from ..recipe.schedule import Pace
from ..samplers import SAMPLERS, Sampler
from ..store.folder import CHECKPOINT, RunFolder
from ..store.listing import MANIFEST
from ..store.lock import FolderLock, lock_folder
from ..store.manifest import HistoryLine, RunProgress
from ..store.weights import load_weights, weights
from ..tasks.base import Carry, Task
from .clipping import Clipper
from .jobs import GRACE, PARENT
from ..store.checkpoint import split_prefix


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


@dataclass(frozen=True)
class Parts:
    """What a run is made of, built before anything is written, so that settings which do not work cost nothing."""

    device: torch.device
    model: nn.Module
    sampler: Sampler
    pace: Pace


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


class Trainer:
    """One run of one task, in memory; the only one that writes in its folder, until `run` ends."""

    def __init__(self, folder: RunFolder, task: Task, parts: Parts | None = None) -> None:
        self.folder, self.task, self.recipe = folder, task, folder.recipe
        parts = parts or build(self.recipe, task)
        self.device, self.model, self.sampler, self.pace = parts.device, parts.model, parts.sampler, parts.pace
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.lock: FolderLock = self._lock()
        folder.sweep()
        self.left_at: tuple[object, ...] | None = None
        """How the files of the folder stood when `run` gave the lock back."""
        self.clipper = Clipper(self.recipe.run.clip, self.recipe.run.clip_norm)
        self.store = folder.store()
        self.step, self.recorded, self.stopped_early = 0, 0, False
        self.evaluating = False
        """True while nothing changes, so that an interruption may cut in."""
        self.carry: Carry = None
        self.running = LogMean()
        self.history: list[HistoryLine] = []
        self.losses: list[float] = []
        self.seconds = 0.0
        self._restore()

    @property
    def finished(self) -> bool:
        return self.stopped_early or (self.step >= self.pace.total and self.recorded >= self.step)

    def run(
        self, on_step: Callable[[Trainer], None] = lambda _: None, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Train to the end. When `stop` (asked after every batch) says yes, save and raise Interrupted."""
        with self._held():
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
        self.carry, self.step = carry, self.step + 1
        self.losses.append(value)

    def _record_is_due(self) -> bool:
        return self.pace.is_record(self.step) and self.recorded < self.step

    def _record(self) -> None:
        """Validate, keep the sample if it is one, and note a line of the learning curve."""
        self.evaluating = True
        model = self.task.as_sample(self.model) if self.pace.is_sample(self.step) else self.model
        log_probs = self.task.log_probs(model, "valid")
        self.evaluating = False
        epoch, average = self.step / self.task.batches_per_epoch, None
        temperature = self.pace.temperature_at(self.step - 1)
        if self.pace.is_sample(self.step):
            self.lock.expect_folder()
            self.store.append(model, self.step, epoch=epoch, temperature=temperature)
            self.running.add(log_probs)
            average = self.task.scores(self.running.value(), "valid").present()
        self.history.append(HistoryLine(
            step=self.step, epoch=epoch, lr=self.pace.lr_at(self.step - 1), temperature=temperature,
            train_loss=sum(self.losses) / max(len(self.losses), 1),
            valid=self.task.scores(log_probs, "valid").present(), average=average,
        ))
        self.losses, self.recorded = [], self.step
        self.stopped_early = self._out_of_patience()
        self.save()

    def _out_of_patience(self) -> bool:
        """No better running average on validation for `patience` samples."""
        patience = self.recipe.run.patience
        scores = [line.average[self.task.score] for line in self.history if line.average]
        return patience is not None and bool(scores) and len(scores) - 1 - scores.index(min(scores)) >= patience

    def save(self) -> None:
        """Write all that the rest of the run depends on, as one file, atomically."""
        if not self.lock.busy:
            with self._held():
                self.save()
            return
        self.lock.expect_folder()
        tensors = {f"model.{name}": tensor for name, tensor in weights(self.model).items()}
        state = self.sampler.state_dict()
        for number, values in state["state"].items():
            tensors |= {f"sampler.{number}.{key}": value.contiguous() for key, value in values.items()}
        for layer, parts in enumerate(self.carry or ()):
            tensors |= {f"carry.{layer}.{part}": tensor.contiguous() for part, tensor in enumerate(parts)}
        if self.running.log_sum is not None:
            tensors["running"] = self.running.log_sum
        groups = [{k: v for k, v in g.items() if k != "params"} for g in state["param_groups"]]
        self.folder.save_checkpoint(tensors, RunProgress(
            step=self.step, total=self.pace.total, recorded=self.recorded, finished=self.finished,
            stopped_early=self.stopped_early, clipped=self.clipper.acted, clip_asked=self.clipper.asked,
            averaged=self.running.count, groups=tuple(groups), losses=tuple(self.losses),
            history=tuple(self.history), seconds=self.seconds, num_data=self.task.num_data,
            samples=tuple(sample.record() for sample in self.store.samples),
        ))

    def _restore(self) -> None:
        loaded = self.folder.load_checkpoint()
        if loaded is None:
            self.store.forget_after(0)
            return
        tensors, progress = loaded
        rooms = split_prefix(tensors)
        load_weights(self.model, rooms["model"], "the checkpoint")
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
        self.carry = unflatten_carry(rooms.get("carry", {}), next(self.model.parameters()).device)
        self.store.return_to(self.recorded, progress.samples)

    def _lock(self) -> FolderLock:
        """Children wait for those of a parent that was killed, which end by themselves after the batch at hand."""
        return lock_folder(self.folder.path, GRACE if PARENT in os.environ else 0.0)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        """Only this trainer writes; if it gave the folder back before, only where nothing has happened to it since."""
        if not self.lock.alive:
            self._refuse_changes()
            self.lock = self._lock()
        with self.lock:
            if self.left_at is not None:  # again: until the lock was ours, somebody could write
                self._refuse_changes()
            try:
                yield
            finally:
                self.left_at = self._stand()

    def _refuse_changes(self) -> None:
        if self.lock.lost or self.left_at != self._stand():
            raise LangevinError(f"the run in {self.folder.path} went on elsewhere while this trainer stood still; open "
                                f"it anew by session.resume")

    def _stand(self) -> tuple[object, ...]:
        """Which checkpoint and which list of samples the folder has."""
        paths = (self.folder.path / CHECKPOINT, self.store.folder / MANIFEST)
        found = [path.stat() if path.exists() else None for path in paths]
        return tuple(status and (status.st_ino, status.st_mtime_ns, status.st_size) for status in found)


def unflatten_carry(flat: dict[str, Tensor], device: torch.device) -> Carry:
    """'layer.part' → [(part, ...), ...], or None when nothing was carried."""
    layers: dict[int, list[Tensor]] = {}
    for name in sorted(flat, key=lambda n: tuple(map(int, n.split(".")))):
        layers.setdefault(int(name.split(".")[0]), []).append(flat[name].to(device))
    return [tuple(layers[number]) for number in sorted(layers)] or None
