"""A recipe fitted to its data and to the time there is, before a run begins and is written down.

What follows from the size of a text or from a clock is resolved here, once: the run folder has
numbers, so that it resumes the same anywhere.
"""

from __future__ import annotations

import time

from ..data.caption_splits import Shares
from ..data.captions import open_captions
from ..data.corpora import read_corpus
from ..data.folds import read_all, refuse_unlearnable, split_corpus
from ..errors import LangevinError
from ..recipe import OPTIMISERS, CaptionData, Recipe, SentenceData, TextData
from ..recipe.captions import epochs_of_captions
from ..recipe.load import validate
from ..recipe.sentences import epochs_by_size
from ..recipe.tables import LONGEST
from ..recipe.text import settings_by_size
from ..samplers.schedules import PLACES
from ..tasks import open_task
from ..tasks.base import Carry, Task
from .gradient import fill_gradient
from .loop import build
from .state import Parts

WARM_UP, TIMED = 3, 20
"""Steps before the clock runs, and steps that it times."""


def fit_recipe(recipe: Recipe) -> Recipe:
    """The same recipe with numbers in place of all that its data or a clock decides."""
    minutes = recipe.run.minutes
    bound = recipe.run.epochs if "epochs" in recipe.run.model_fields_set else None
    if recipe.run.by_size:
        recipe = fit_to_size(recipe)
    return recipe if minutes is None else fit_to_time(recipe, minutes, bound)


def fit_to_size(recipe: Recipe) -> Recipe:
    """Keys that nobody set, by the rule for a text of this size, or so many sentences, captions."""
    values = recipe.model_dump(mode="json", exclude_none=True)
    rule: dict[str, dict[str, int | float]]
    if isinstance(recipe.data, SentenceData):
        epochs = epochs_by_size(training_sentences(recipe.data), recipe.data)
        rule = {"run": {"epochs": epochs}}
    elif isinstance(recipe.data, CaptionData):
        epochs = epochs_of_captions(training_captions(recipe.data), recipe.data.batch_size)
        rule = {"run": {"epochs": epochs}}
    else:
        rule = settings_by_size(recipe.data.level, training_tokens(recipe.data))
        if recipe.sampler.name in OPTIMISERS:
            del rule["sampler"]["prior_var"]
    for table, settings in rule.items():
        given = getattr(recipe, table).model_fields_set
        values[table] |= {key: value for key, value in settings.items() if key not in given}
    values["run"]["by_size"] = False
    return validate(values)


def training_sentences(data: SentenceData) -> int:
    """How many sentences the training split has."""
    corpus = read_all(data)
    labels = next(iter(corpus.values())).names
    refuse_unlearnable(data, corpus, labels)
    parts, _ = split_corpus(data, corpus, labels)
    return len(parts["train"])


def training_captions(data: CaptionData) -> int:
    """How many captions the images of the training split have."""
    shares = Shares(data.valid_share, data.test_share)
    captions = open_captions(data.corpus, shares, allow_bare=data.allow_missing)
    return sum(len(captions.texts[name]) for name in captions.splits["train"])


def training_tokens(data: TextData) -> int:
    """About how many tokens the training split has, in one pass over the text."""
    corpus = read_corpus(data.corpus)
    text, share = corpus.get("train"), 1.0
    if text is None:
        text, share = corpus["text"], data.parts[0] / sum(data.parts)
    count = 0
    for chunk in text.chunks():
        if data.level == "byte":
            count += len(chunk)
        elif data.level == "char":
            count += len(chunk.decode("utf-8", "ignore"))
        else:
            count += len(chunk.split()) + chunk.count(b"\n")
    return round(count * share)


def fit_to_time(recipe: Recipe, minutes: float, bound: float | None) -> Recipe:
    """So many epochs as fit into the minutes, at most the bound."""
    started = time.monotonic()
    task = open_task(recipe)
    step, validation = seconds_of(task, build(recipe, task))
    left = 60 * minutes - (time.monotonic() - started) - len(PLACES) * validation
    if left < step:
        raise LangevinError(
            f"expected minutes for at least one step and {len(PLACES)} validations, got "
            f"{minutes:g}: a step takes {step:.2g} seconds here, a validation {validation:.2g}; "
            f"allow more"
        )
    epochs = int(left / step) / task.batches_per_epoch
    values = recipe.model_dump(mode="json", exclude_none=True)
    del values["run"]["minutes"]
    values["run"]["epochs"] = min(epochs, LONGEST if bound is None else bound)
    return validate(values)


def seconds_of(task: Task, parts: Parts) -> tuple[float, float]:
    """Of a step of training and of a validation, measured on parts that are thrown away."""
    carries: list[Carry] = [None] * len(parts.pieces)
    begun = 0.0
    for number in range(WARM_UP + TIMED):
        if number == WARM_UP:
            begun = time.monotonic()
        _, carries = fill_gradient(parts, task, number, carries)
        parts.sampler.step()
    step = (time.monotonic() - begun) / TIMED
    begun = time.monotonic()
    task.log_probs(parts.model, "valid", shard=parts.share)
    return step, time.monotonic() - begun
