"""All arms on labelled sentences, in the order in which they need each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from langevin.errors import LangevinError
from langevin.posterior.log_pool import pool_draws, weigh

from .adam_classifier import MASKS, RATES, AdamRun, tuned_run
from .class_scores import Said, peak_bytes, reset_peak, score_classes
from .fine_tuned import fine_tune, predicted, tokenise
from .linear_rivals import LinearRival, ngram_rival, vector_rival
from .ours import measure_classes
from .records import Record, Records, about, clocked
from .sentence_sets import SentenceSet, SentenceSplits, open_sentences
from .text_sets import SCRATCH

Told = tuple[Said, Record]


@dataclass
class ClassBench:
    """One set with one seed, which for most sets is a fold."""

    data: SentenceSplits
    records: Records
    adam: tuple[AdamRun, list[Record]] | None = field(default=None)

    @property
    def name(self) -> str:
        return self.data.chosen.name

    def path(self, arm: str) -> Any:
        return SCRATCH / "said" / f"{self.name}-{self.data.seed}-{arm}.safetensors"

    def keep(self, arm: str, said: Said) -> None:
        self.path(arm).parent.mkdir(parents=True, exist_ok=True)
        save_file({"valid": said.valid, "test": said.test, "foreign": said.foreign}, self.path(arm))

    def said(self, arm: str) -> Said:
        """What an arm said that was run here before."""
        if not self.path(arm).exists():
            raise LangevinError(f"expected what {arm} said in {self.path(arm)}, it is gone; remove "
                                f"its record and run it again")
        return Said(**load_file(self.path(arm)))

    def adam_of(self) -> tuple[AdamRun, list[Record]]:
        """Trained once for the arms that use it; rates are tried on the first seed alone."""
        if self.adam is None:
            held = [record for (name, seed, arm), record in self.records.held.items()
                    if (name, arm) == (self.name, "adam") and record["trials"]]
            own = self.records.find(self.name, self.data.seed, "adam")
            known = own or (held[0] if held else None)
            self.adam = tuned_run(self.data, (known["recipe"]["rate"],) if known else RATES)
        return self.adam

    def costs(self, fit: float, predict: float) -> Record:
        """Seconds of processor time: of fitting, and of predicting 1,000 sentences."""
        items = sum(len(self.data.texts[part]) for part in ("valid", "test", "foreign"))
        return {"seconds": fit, "seconds_per_1000": 1000 * predict / items}


def linear(bench: ClassBench, rival: LinearRival, items: dict[str, Any], encoding: float = 0.0,
           each: float = 0.0) -> Told:  # fmt: skip
    """Fit, choose C, predict; `encoding` and `each` are the encoder's seconds before."""
    targets = bench.data.targets
    with clocked() as fit:
        rival.choose(items["train"], targets["train"], items["valid"], targets["valid"])
    with clocked() as predict:
        said = Said(*(rival.log_probs(items[part]) for part in ("valid", "test", "foreign")))
    told = {"recipe": {"C": rival.c}, "trials": rival.trials}
    return said, told | bench.costs(fit.cpu + encoding, predict.cpu + each)


def tfidf(bench: ClassBench) -> Told:
    return linear(bench, ngram_rival(), bench.data.texts)


def tfidf_refit(bench: ClassBench) -> Told:
    """On training and validation, at the C chosen before; the temperature is that from before."""
    rival, data = ngram_rival(), bench.data
    before, told = linear(bench, rival, data.texts)
    both = data.texts["train"] + data.texts["valid"]
    with clocked() as more:
        rival.refit(both, torch.cat([data.targets["train"], data.targets["valid"]]))
    said = Said(before.valid, rival.log_probs(data.texts["test"]), rival.log_probs(data.texts["foreign"]))
    return said, told | {"seconds": told["seconds"] + more.cpu}


def encoder_linear(bench: ClassBench) -> Told:
    vectors, spent = bench.data.vectors(), bench.data.seconds_of_encoding
    return linear(bench, vector_rival(), vectors, spent["train"],
                  spent["valid"] + spent["test"] + spent["foreign"])  # fmt: skip


def pooled(bench: ClassBench, arms: Sequence[str]) -> Told:
    """In logarithms, weighed by validation, as langevin pools its members."""
    members = {arm: bench.said(arm) for arm in arms}
    weights = weigh({arm: said.valid for arm, said in members.items()}, bench.data.targets["valid"])
    said = Said(*(pool_draws([getattr(own, part) for own in members.values()], list(weights.values()))
                  for part in ("valid", "test", "foreign")))  # fmt: skip
    held = [bench.records.find(bench.name, bench.data.seed, arm) for arm in arms]
    told: Record = {"recipe": {"weights": weights}, "trials": []}
    for name in ("seconds", "seconds_per_1000"):
        told[name] = sum(record[name] for record in held if record)
    return said, told


def fine_tuned(bench: ClassBench) -> Told:
    with clocked() as fit:
        model, trials = fine_tune(bench.data)
    rows = tokenise(bench.data)
    with clocked() as predict:
        said = Said(*(predicted(model, rows[part])[None] for part in ("valid", "test", "foreign")))
    epoch = min(trials, key=lambda trial: float(trial["valid_nll"]))["epoch"]
    return said, {"recipe": {"epoch": epoch}, "trials": trials} | bench.costs(fit.cpu, predict.cpu)


def of_adam(bench: ClassBench, say: Callable[[AdamRun], Said], recipe: Record) -> Told:
    run, trials = bench.adam_of()
    with clocked() as predict:
        said = say(run)
    return said, {"recipe": {"rate": run.rate} | recipe, "trials": trials} | bench.costs(
        run.seconds, predict.cpu
    )


def adam(bench: ClassBench) -> Told:
    """The epoch that validation prefers."""
    foreign = bench.data.texts["foreign"]
    return of_adam(bench, lambda run: run.say([run.weights[run.best_epoch]], foreign), {})


def adam_snapshots(bench: ClassBench) -> Told:
    """The last epochs averaged, as many as validation prefers."""
    foreign = bench.data.texts["foreign"]
    return of_adam(bench, lambda run: run.say(run.last(), foreign), {})


def mc_dropout(bench: ClassBench) -> Told:
    foreign = bench.data.texts["foreign"]
    return of_adam(bench, lambda run: run.say([run.weights[run.best_epoch]], foreign, MASKS),
                   {"masks": MASKS})  # fmt: skip


CLASS_ARMS: dict[str, Callable[[ClassBench], Told]] = {
    "tfidf": tfidf, "tfidf-refit": tfidf_refit, "encoder-linear": encoder_linear,
    "linear-pooled": lambda bench: pooled(bench, ("tfidf", "encoder-linear")),
    "adam": adam, "adam-snapshots": adam_snapshots, "mc-dropout": mc_dropout,
    "adam-pooled": lambda bench: pooled(bench, ("adam-snapshots", "tfidf")),
    "adam-encoder-pooled": lambda bench: pooled(bench, ("adam-snapshots", "tfidf", "encoder-linear")),
    "fine-tuned": fine_tuned,
    "ours": lambda bench: measure_classes(bench.data, "classify-words"),
    "ours-vectors": lambda bench: measure_classes(bench.data, "classify-vectors"),
    "ours-encoder": lambda bench: measure_classes(bench.data, "classify-encoder"),
}  # fmt: skip


def run_sentences(sets: Sequence[SentenceSet], seeds: Sequence[int], arms: Sequence[str],
                  records: Records) -> None:  # fmt: skip
    """What is not there yet, one after the other."""
    for chosen in sets:
        for seed in seeds:
            missing = [arm for arm in CLASS_ARMS
                       if arm in arms and not records.find(chosen.name, seed, arm)]
            if not missing:
                continue
            bench = ClassBench(open_sentences(chosen, seed), records)
            for arm in missing:
                print(f"{chosen.name}, seed {seed}: {arm}", file=sys.stderr, flush=True)
                record = measured(bench, arm)
                records.put({"set": chosen.name, "seed": seed, "arm": arm} | record | about())
                print(f"  {100 * record['error']:.1f} %, {record['nll']:.4f}, {record['seconds']:.0f} s",
                      file=sys.stderr, flush=True)  # fmt: skip


def measured(bench: ClassBench, arm: str) -> Record:
    """One arm: what it says, what that is worth, what it costs."""
    reset_peak()
    said, told = CLASS_ARMS[arm](bench)
    bench.keep(arm, said)
    return {"peak_bytes": peak_bytes()} | score_classes(said, bench.data.targets) | told
