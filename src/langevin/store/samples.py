"""Posterior samples on disk: one safetensors file each, and a list that is written last."""

from __future__ import annotations

import hashlib
import json
import logging
import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor, nn

from ..errors import LangevinError
from ..files import IRREGULAR, inside, listed_name, no_file, sync_folder, write_atomic
from .listing import Listing
from .manifest import SampleRecord
from .validation import validation_of
from .weights import DamagedSample, load_weights, weights

T = TypeVar("T")
SAMPLE = re.compile(r"\d{9,18}\.safetensors|sample-\d{4,9}\.safetensors")
"""Names of samples, in a run folder by their step and in an exported one by their place."""
REMEDY = "go on without it by --skip-damaged, or SampleStore(folder, skip_damaged=True)"
COLLECTIONS = ("forward", "backward", "thinned")
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
        """The tensors of the file that was written. Never two copies in memory."""
        if problem := self.altered():
            raise DamagedSample(problem)
        try:
            return safetensors.torch.load_file(self.path)
        except (OSError, SafetensorError) as error:
            raise DamagedSample(f"sample {self.path} cannot be read: {error}; {REMEDY}") from None

    def altered(self) -> str:
        """How the file differs from what was written, in words; empty if it does not."""
        if no_file(self.path) == IRREGULAR:
            return f"sample {self.path} is {IRREGULAR}; {REMEDY}"
        try:
            with self.path.open("rb") as file:
                same = hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except FileNotFoundError:
            return f"sample {self.path} is listed but not there; {REMEDY}"
        except OSError as error:
            return f"sample {self.path} cannot be read: {error}; {REMEDY}"
        message = f"sample {self.path} was changed after it was written (its hash differs); {REMEDY}"
        return "" if same else message

    def record(self) -> SampleRecord:
        """What is listed of it."""
        return SampleRecord(
            file=self.path.name, step=self.step, sha256=self.sha256, about=self.about)

    def load_into(self, model: nn.Module) -> None:
        """Put these weights into a model of the same shape."""
        load_weights(model, self.load(), str(self.path))


class SampleStore:
    """An append-only folder of samples. Burn-in and thinning are the reader's choice.

    >>> store = SampleStore(folder)
    >>> sample = store.append(model, step=100)
    >>> [sample.step for sample in store.read()]
    [100]
    """

    def __init__(
        self, folder: str | Path, *, skip_damaged: bool = False,
        known: Sequence[SampleRecord] = (),
    ) -> None:
        """`known` should be listed: samples that a checkpoint has."""
        self.folder = Path(folder)
        self.listing = Listing(self.folder)
        self.samples = self._samples_of(self.listing.records, self.listing.source)
        listed = {record.file: record for record in self.listing.records}
        self.lost = [f"sample {self.folder / record.file} is not listed as the checkpoint knows it"
                     for record in known if listed.get(record.file) != record]
        self.skipped: list[str] = []
        self.chains = len({sample.chain for sample in self.samples}) or 1
        if skip_damaged:
            self.skipped, self.lost = self.lost, []
            self.samples = [sample for sample in self.samples if self._is_sound(sample)]

    @classmethod
    def of_chains(cls, folder: str | Path, parts: Sequence[SampleStore]) -> SampleStore:
        """The stores of several chains as one, to read; discarding and choosing is within each."""
        joint = cls(folder)
        joint.chains = len(parts)
        joint.samples = [replace(s, chain=chain)
                         for chain, part in enumerate(parts) for s in part.samples]
        joint.skipped = [problem for part in parts for problem in part.skipped]
        joint.lost = [problem for part in parts for problem in part.lost]
        return joint

    def append(self, model: nn.Module, step: int, **about: Any) -> Sample:
        """Write the weights as a sample, with numbers or words `about` it; steps must increase."""
        step = operator.index(step)
        about = {name: plain(value) for name, value in about.items()}
        if self.chains > 1:
            raise LangevinError(f"{self.folder} holds {self.chains} chains; append to the store of "
                                f"one of them")
        if not 0 <= step < 10**18:
            raise LangevinError(f"expected a step from 0 to 10**18, got {step}; count the steps")
        if self.samples and step <= self.samples[-1].step:
            raise LangevinError(
                f"step must be above {self.samples[-1].step}, the last one in {self.folder}, got "
                f"{step}; go on from there, take another folder, or drop them by forget_after(0)")
        try:
            json.dumps(about)
        except (TypeError, ValueError) as error:
            raise LangevinError(f"expected numbers or words about a sample, got {about}: "
                                f"{error}") from None
        content = safetensors.torch.save(weights(model))
        path = self.folder / f"{step:09d}.safetensors"
        sample = Sample(path, step, hashlib.sha256(content).hexdigest(), about)
        write_atomic(path, content)
        self.listing.append(sample.record())
        self.samples.append(sample)
        return sample

    def read(self, *, discard: int = 0, thin: int = 1) -> list[Sample]:
        """Without the first `discard`, every `thin`-th of the rest; of each chain by itself."""
        if discard < 0 or thin < 1:
            raise LangevinError(f"expected discard ≥ 0 and thin ≥ 1, got discard={discard} and "
                                f"thin={thin}")
        self._refuse_lost()
        if not self.samples:
            raise LangevinError(f"no samples in {self.folder}; train longer than the burn-in, or "
                                f"append some")
        chains = self.by_chain()
        left = [chain[discard::thin] for chain in chains]
        if not all(left):
            shortest = min(map(len, chains))
            if not shortest:
                raise LangevinError(f"a chain in {self.folder} has no samples yet; train it longer "
                                    f"than its burn-in")
            raise LangevinError(f"discarding {discard} of {shortest} samples leaves none; discard "
                                f"fewer")
        return [sample for chain in left for sample in chain]

    def select(self, how: str, n: int | None = None, *, discard: int = 0) -> list[Sample]:
        """The forward, backward or thinned collection of n samples of each chain (None: of all)."""
        self.read(discard=discard)
        return [s for chain in self.by_chain() for s in choose(chain[discard:], how, n)]

    def by_chain(self) -> list[list[Sample]]:
        """The samples of each chain, in the order they were drawn."""
        chains: list[list[Sample]] = [[] for _ in range(self.chains)]
        for sample in self.samples:
            chains[sample.chain].append(sample)
        return chains

    def of_each(self, total: int) -> int | None:
        """How many samples of each chain make about `total`, as far as there are; None for none."""
        return min(-(-total // self.chains), *map(len, self.by_chain()), total) or None

    def forget_after(self, step: int) -> None:
        """Drop the samples beyond this step: a run that resumes from there draws them again."""
        late = [sample for sample in self.samples if sample.step > step]
        if late:
            self._list([sample for sample in self.samples if sample.step <= step])
            for sample in late:
                validation_of(sample.path).unlink(missing_ok=True)
                sample.path.unlink(missing_ok=True)
            sync_folder(self.folder)

    def return_to(self, step: int, known: Sequence[SampleRecord] | None) -> None:
        """Go back to the samples that a checkpoint of this step knows; of old ones by steps alone.

        Later ones are dropped, damaged ones are told of. Where the list has lost some or has
        others, it is mended from their files, which the checkpoint can tell to be sound, or refused.
        """
        listed = [sample.record() for sample in self.samples if sample.step <= step]
        if known is not None and listed != list(known):
            by_file = {record.file: record for record in known}
            left = sum(by_file.get(record.file) == record for record in listed)
            later = [sample for sample in self.samples if sample.step > step]
            self._list([*self._mended(known, left), *later])
        self.lost = []
        self.forget_after(step)
        self.tell_of_damage()

    def tell_of_damage(self) -> None:
        """Say which samples are not as they were written."""
        for sample in self.samples:
            if problem := sample.altered():
                log.warning("%s", problem)

    def _mended(self, known: Sequence[SampleRecord], left: int) -> list[Sample]:
        """The samples that a checkpoint knows, `left` of them still listed, if all are sound."""
        path = self.listing.source
        found = self._samples_of(known, path)
        message = (f"{path} lists {left} of the {len(known)} samples that the checkpoint of this run "
                f"knows")
        for sample in found:
            if damage(sample):
                raise LangevinError(
                    f"{message}, and {sample.path.name} is not there as it was written; bring it back "
                    f"from a copy, or delete the checkpoint to start the run again from its recipe")
        log.warning("%s; their files are sound, so that they are listed again", message)
        return found

    def __len__(self) -> int:
        self._refuse_lost()
        return len(self.samples)

    def _refuse_lost(self) -> None:
        if self.lost:
            raise LangevinError(f"{self.lost[0]}, {len(self.lost)} of them; 'langevin resume' lists "
                                f"them again, --skip-damaged goes on without")

    def _is_sound(self, sample: Sample) -> bool:
        if problem := damage(sample):
            self.skipped.append(problem)
        return not problem

    def _samples_of(self, listed: Sequence[SampleRecord], source: Path) -> list[Sample]:
        """Samples from what is listed of them; names that are none of ours are refused."""
        if len({record.file for record in listed}) < len(listed):
            raise LangevinError(f"expected each sample once in {source}, got one twice; bring it "
                                f"back as it was written")
        chains = [str(record.about.get("chain", 0)) for record in listed]  # only exports have it
        number = {chain: index for index, chain in enumerate(dict.fromkeys(chains))}
        samples = [
            Sample(inside(self.folder, listed_name(record.file, SAMPLE, source)), record.step,
                   record.sha256, record.about, number[chain])
            for record, chain in zip(listed, chains, strict=True)
        ]
        last = dict[int, int]()
        for sample in samples:
            if sample.step <= last.get(sample.chain, -1):
                raise LangevinError(f"expected steps that increase in {source}, got {sample.step} "
                                    f"after {last[sample.chain]}; bring it back as it was written")
            last[sample.chain] = sample.step
        return samples

    def _list(self, samples: Iterable[Sample]) -> None:
        self.samples = list(samples)
        self.listing.replace(sample.record() for sample in self.samples)


def name_of_last(how: str) -> str:
    """What to call the last of the chosen samples: often it is that of the run."""
    return "last sample" if how in ("backward", "thinned") else "last of the collection"


def choose(samples: list[T], how: str, n: int | None = None) -> list[T]:
    """*forward*: the first n; *backward*: the last n; *thinned*: every K/n-th of K, to the last.

    The three collections of the paper (Section 4.1).

    >>> choose([1, 2, 3, 4, 5, 6], "thinned", 3)
    [2, 4, 6]
    """
    if how not in COLLECTIONS:
        raise LangevinError(f"select must be one of {', '.join(COLLECTIONS)}, got {how!r}")
    total = len(samples)
    n = total if n is None else n
    if not 1 <= n <= total:
        raise LangevinError(f"expected between 1 and {total} samples, as many as there are, "
                            f"got {n}")
    if how == "forward":
        return samples[:n]
    if how == "backward":
        return samples[total - n :]
    return [samples[(i + 1) * total // n - 1] for i in range(n)]


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
