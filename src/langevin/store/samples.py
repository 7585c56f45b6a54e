"""Posterior samples on disk: one safetensors file each and a manifest, written last."""

from __future__ import annotations

import hashlib
import json
import logging
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from ..errors import LangevinError
from ..files import inside, listed_name, sync_folder, write_atomic
from .manifest import SampleRecord
from .select import choose

MANIFEST = "manifest.json"
SAMPLE = re.compile(r"\d{9,18}\.safetensors|sample-\d{4,9}\.safetensors")
"""Names of samples, in a run folder by their step and in an exported one by their place."""
REMEDY = "go on without it by --skip-damaged, or SampleStore(folder, skip_damaged=True)"
log = logging.getLogger("langevin")


@dataclass(frozen=True)
class Sample:
    """One draw of the weights, still on disk."""

    path: Path
    step: int
    sha256: str
    about: dict[str, Any] = field(default_factory=dict)
    chain: int = 0
    """Which of several chains drew it."""

    def load(self) -> dict[str, Tensor]:
        """The tensors, after checking that the file is the one that was written. Never two copies in memory."""
        try:
            with self.path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != self.sha256:
                    raise DamagedSample(
                        f"sample {self.path} was changed after it was written (its hash differs); {REMEDY}"
                    )
            return safetensors.torch.load_file(self.path)
        except FileNotFoundError:
            raise DamagedSample(f"sample {self.path} is listed in {MANIFEST} but is not there; {REMEDY}") from None
        except (OSError, SafetensorError) as error:
            raise DamagedSample(f"sample {self.path} cannot be read: {error}; {REMEDY}") from None

    def facts(self) -> dict[str, Any]:
        """What the manifest lists of it."""
        return self.record().to_dict()

    def record(self) -> SampleRecord:
        return SampleRecord(file=self.path.name, step=self.step, sha256=self.sha256, about=self.about)

    def load_into(self, model: nn.Module) -> None:
        """Put these weights into a model of the same shape."""
        load_weights(model, self.load(), str(self.path))


class DamagedSample(LangevinError):
    """A sample file that is missing, truncated, foreign or altered."""


class SampleStore:
    """An append-only folder of samples. Burn-in and thinning are the reader's choice: everything is kept.

    >>> store = SampleStore(folder)
    >>> sample = store.append(model, step=100)
    >>> [sample.step for sample in store.read()]
    [100]
    """

    def __init__(self, folder: str | Path, *, skip_damaged: bool = False) -> None:
        self.folder = Path(folder)
        self.samples = self._read_manifest()
        self.skipped: list[str] = []
        self.chains = len({sample.chain for sample in self.samples}) or 1
        if skip_damaged:
            self.samples = [sample for sample in self.samples if self._is_sound(sample)]

    @classmethod
    def of_chains(
        cls, folder: str | Path, stores: Sequence[str | Path], *, skip_damaged: bool = False
    ) -> SampleStore:
        """The stores of several chains as one, to read: chain after chain; discarding and choosing is within each."""
        joint, parts = cls(folder), [cls(path, skip_damaged=skip_damaged) for path in stores]
        joint.chains = len(parts)
        joint.samples = [replace(s, chain=chain) for chain, part in enumerate(parts) for s in part.samples]
        joint.skipped = [problem for part in parts for problem in part.skipped]
        return joint

    def append(self, model: nn.Module, step: int, **about: Any) -> Sample:
        """Write the current weights as a sample, with numbers or words `about` it; steps must increase."""
        step, about = operator.index(step), {name: plain(value) for name, value in about.items()}
        if self.chains > 1:
            raise LangevinError(f"{self.folder} holds {self.chains} chains; append to the store of one of them")
        if self.samples and step <= self.samples[-1].step:
            last = self.samples[-1].step
            raise LangevinError(f"step must be above {last}, the last one in {self.folder}, got {step}; "
                                f"go on from there, choose another folder, or drop them with forget_after(0)")
        try:
            json.dumps(about)
        except (TypeError, ValueError) as error:
            raise LangevinError(f"expected numbers or words about a sample, got {about}: {error}") from None
        content = safetensors.torch.save(weights(model))
        sample = Sample(self.folder / f"{step:09d}.safetensors", step, hashlib.sha256(content).hexdigest(), about)
        write_atomic(sample.path, content)
        self._write_manifest([*self.samples, sample])
        return sample

    def read(self, *, discard: int = 0, thin: int = 1) -> list[Sample]:
        """The samples after the first `discard`, every `thin`-th of them; of each chain, where there are several."""
        if discard < 0 or thin < 1:
            raise LangevinError(f"expected discard ≥ 0 and thin ≥ 1, got discard={discard} and thin={thin}")
        if not self.samples:
            raise LangevinError(f"no samples in {self.folder}; train longer than the burn-in, or append some")
        kept = [chain[discard::thin] for chain in self.by_chain()]
        if not all(kept):
            shortest = min(map(len, self.by_chain()))
            if not shortest:
                raise LangevinError(f"a chain in {self.folder} has no samples yet; train it longer than its burn-in")
            raise LangevinError(f"discarding {discard} of {shortest} samples leaves none; discard fewer")
        return [sample for chain in kept for sample in chain]

    def select(self, how: str, n: int | None = None, *, discard: int = 0) -> list[Sample]:
        """The forward, backward or thinned collection of n samples of each chain (all of them when n is None)."""
        self.read(discard=discard)
        return [sample for chain in self.by_chain() for sample in choose(chain[discard:], how, n)]

    def by_chain(self) -> list[list[Sample]]:
        """The samples of each chain, in the order they were drawn."""
        return [[s for s in self.samples if s.chain == chain] for chain in range(self.chains)]

    def of_each(self, total: int) -> int | None:
        """How many samples of each chain make about `total` in all, as far as there are so many; None for none."""
        return min(-(-total // self.chains), *map(len, self.by_chain()), total) or None

    def forget_after(self, step: int) -> None:
        """Drop the samples beyond this step: a run that resumes from there draws them again."""
        late = [sample for sample in self.samples if sample.step > step]
        if late:
            self._write_manifest([sample for sample in self.samples if sample.step <= step])
            for sample in late:
                sample.path.unlink(missing_ok=True)
            sync_folder(self.folder)

    def return_to(self, step: int, known: Sequence[SampleRecord] | None) -> None:
        """Go back to the samples that a checkpoint of this step knows of; of old ones (None) by their steps alone.

        Later ones are dropped. Where the manifest has lost some or has others, it is mended from their files, which the
        checkpoint can tell to be sound, or else refused.
        """
        listed = [sample.record() for sample in self.samples if sample.step <= step]
        if known is not None and listed != list(known):
            kept = self._mended([record.to_dict() for record in known], sum(record in known for record in listed))
            self._write_manifest([*kept, *(sample for sample in self.samples if sample.step > step)])
        self.forget_after(step)

    def _mended(self, known: Sequence[dict[str, Any]], left: int) -> list[Sample]:
        """The samples that a checkpoint knows, `left` of which are still listed, if the files of all are sound."""
        path = self.folder / MANIFEST
        try:
            kept = self._samples_of(known, path)
        except (KeyError, TypeError, AttributeError) as error:
            raise LangevinError(f"expected the samples of {self.folder} in the checkpoint of the run, they cannot be "
                                f"read ({error!r}); delete it to start this run again from its recipe") from None
        said = f"{path} lists {left} of the {len(known)} samples that the checkpoint of this run knows"
        for sample in kept:
            if damage(sample):
                raise LangevinError(f"{said}, and {sample.path.name} is not there as it was written; bring it back "
                                    f"from a copy, or delete the checkpoint to start this run again from its recipe")
        log.warning("%s; their files are sound, so that they are listed again", said)
        return kept

    def __len__(self) -> int:
        return len(self.samples)

    def _is_sound(self, sample: Sample) -> bool:
        if problem := damage(sample):
            self.skipped.append(problem)
        return not problem

    def _read_manifest(self) -> list[Sample]:
        path = self.folder / MANIFEST
        if not path.exists():
            return []
        try:
            return self._samples_of(json.loads(inside(self.folder, MANIFEST).read_text("utf-8"))["samples"], path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise LangevinError(f"expected a manifest of samples in {path}, it cannot be read: {error!r}") from None

    def _samples_of(self, listed: Sequence[dict[str, Any]], source: Path) -> list[Sample]:
        """Samples from what is listed of them; names that are none of ours are refused."""
        chains = [s["about"].get("chain", 0) for s in listed]  # only an exported folder tells them apart
        number = {chain: index for index, chain in enumerate(dict.fromkeys(chains))}
        return [
            Sample(inside(self.folder, listed_name(s["file"], SAMPLE, source)), s["step"], s["sha256"], s["about"],
                   number[chain])
            for s, chain in zip(listed, chains, strict=True)
        ]

    def _write_manifest(self, samples: Iterable[Sample]) -> None:
        samples = list(samples)
        listed = [sample.facts() for sample in samples]
        write_atomic(self.folder / MANIFEST, json.dumps({"format": 1, "samples": listed}, indent=1).encode())
        self.samples = samples


def damage(sample: Sample) -> str:
    """What is wrong with the file of a sample, empty if nothing is."""
    try:
        sample.load()
    except DamagedSample as error:
        return str(error)
    return ""


def plain(value: Any) -> Any:
    """A number of torch or numpy as Python's, so that it can be listed."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters (tied ones once) and buffers of a model, by name, contiguous and on the CPU."""
    named = dict(model.named_parameters()) | {n: b for n, b in model.named_buffers() if n in model.state_dict()}
    return {name: tensor.detach().contiguous().cpu() for name, tensor in named.items()}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copy stored tensors into a model, refusing any difference in names or shapes.

    What torch.compile and DataParallel put before names does not matter, on either side.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in weights(model).items()}
    tensors = named_alike(tensors, expected)
    got = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if expected != got:
        differing = [name for name in expected | got if expected.get(name) != got.get(name)]
        name = min(differing)
        raise DamagedSample(
            f"{source} does not fit the model: {name} is {got.get(name, 'absent')} there, "
            f"{expected.get(name, 'absent')} in the model; use the store of this model"
        )
    model.load_state_dict(tensors, strict=False)


def named_alike(tensors: Mapping[str, Tensor], names: Iterable[str]) -> Mapping[str, Tensor]:
    """The tensors under the names of a model, where theirs differ by wrappers; others as they are."""
    names = list(names)
    if set(tensors) == set(names):
        return tensors
    plain_names = {without_wrappers(name): name for name in names}
    plain_tensors = {without_wrappers(name): tensor for name, tensor in tensors.items()}
    if len(plain_names) < len(names) or len(plain_tensors) < len(tensors):
        return tensors  # two would get one name
    return {plain_names.get(name, name): tensor for name, tensor in plain_tensors.items()}


def without_wrappers(name: str) -> str:
    """`_orig_mod.` anywhere is torch.compile's, `module.` in front DataParallel's and others'."""
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    while len(parts) > 1 and parts[0] == "module":
        parts.pop(0)
    return ".".join(parts)
