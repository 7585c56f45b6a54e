"""BLEU, METEOR, ROUGE-L and CIDEr of a run on a split: of the average and of the last sample."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..errors import LangevinError
from ..store.samples import Sample
from ..tasks.captioning import CaptionTask
from .captioning import BeamSettings, CaptionPosterior, sentence
from .load import open_as
from .coco import CocoScores, evaluate_captions, write_coco_results
from ..process import Progress, SILENT
from .results import CaptionMetrics


def check_request(
    run: Path,
    out: Path,
    search: BeamSettings,
    *,
    text: Path | None = None,
    mc_dropout: int | None = None,
    overwrite: bool = False,
) -> None:
    """Refuse early what `caption_metrics` could not do after an evaluation."""
    open_as(CaptionPosterior, run)
    search.check()
    if text is not None:
        raise LangevinError(
            f"expected --captions of one of the run's splits, got --text {text} too; leave one out"
        )
    refuse_masks(mc_dropout)
    check_target(out, overwrite=overwrite)


def refuse_masks(mc_dropout: int | None) -> None:
    if mc_dropout:
        raise LangevinError(
            f"expected captions of stored samples, got {mc_dropout} masks of Monte-Carlo dropout; "
            f"leave --mc-dropout or --captions out"
        )


def check_target(out: Path, *, overwrite: bool) -> None:
    """Refuse files that could not be written, or must not be."""
    try:
        if out.is_dir() or out.name == "..":
            raise LangevinError(
                f"expected a file for the captions, got the folder {out}; name a file in it"
            )
        for path in files_of(out).values():
            if path.is_dir():
                raise LangevinError(
                    f"expected a place for the captions at {path}, got a folder; choose another "
                    f"file"
                )
            if path.exists() and not overwrite:
                raise LangevinError(
                    f"{path} exists; choose another file for --captions or allow --overwrite"
                )
        above = next(folder for folder in out.absolute().parents if folder.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            raise LangevinError(
                f"expected a place for {out}, got {above}, which cannot be written to; choose "
                f"another"
            )
    except OSError as error:
        raise LangevinError(
            f"cannot write {out}: {error.strerror}; choose another file for --captions"
        ) from None


def files_of(out: Path) -> dict[str, Path]:
    """Where captions go: to the file named, and those of the last sample beside it."""
    return {"averaged": out, "last": out.with_name(f"{out.stem}-last{out.suffix}")}


def caption_metrics(
    captioner: CaptionPosterior,
    split: str,
    search: BeamSettings,
    out: Path,
    progress: Progress = SILENT,
) -> CaptionMetrics:
    """COCO's metrics of the captions of a split by the last sample and by the average.

    The captions go to `out` and, those of the last sample, to the same name with `-last`, in COCO's
    results format, before they are scored: nothing is lost when a metric fails.
    """
    files = files_of(out)
    models = {"averaged": captioner.draws, "last": captioner.draws[-1:]}
    scores = score_models(captioner, split, models, search, files, progress)
    return CaptionMetrics(
        last=scores["last"].metrics,
        averaged=scores["averaged"].metrics,
        files={kind: str(path) for kind, path in files.items()},
        **facts_of(scores, search),
    )


def score_models(
    run: CaptionPosterior,
    split: str,
    models: Mapping[str, list[Sample]],
    search: BeamSettings,
    files: Mapping[str, Path],
    progress: Progress = SILENT,
) -> dict[str, CocoScores]:
    """Caption a split by each of several models, which average some samples, and score these."""
    task = run.data
    assert isinstance(task, CaptionTask)
    names = task.images.get(split)
    if names is None:
        raise LangevinError(
            f"--captions needs one of the run's splits, {', '.join(task.images)}; leave --text out"
        )
    advance = progress.begin(len(models) * len(names))
    features = task.features.take(torch.tensor([task.features.rows[name] for name in names]))
    captions = {}
    for kind, samples in models.items():
        chosen = None if samples == run.draws else samples
        found = run.search(features, search, chosen, advance)
        best = (sentence(run.vocabulary, hypotheses[0]) for hypotheses in found)
        captions[kind] = dict(zip(names, best, strict=True))
        write_coco_results(files[kind], captions[kind])
    references = {name: task.captions.texts[name] for name in names}
    scored: dict[tuple[str, ...], CocoScores] = {}
    for written in captions.values():  # models that write the same are scored once
        if tuple(written.values()) not in scored:
            scored[tuple(written.values())] = evaluate_captions(references, written)
    return {kind: scored[tuple(written.values())] for kind, written in captions.items()}


def facts_of(scores: Mapping[str, CocoScores], search: BeamSettings) -> dict[str, Any]:
    """How the captions were made and scored."""
    return {
        "beam": search.beam,
        "length_power": search.length_power,
        "max_length": search.max_length,
        "tokenizer": " and ".join(dict.fromkeys(own.tokenizer for own in scores.values())),
        "notes": notes(scores),
    }


def notes(scores: Mapping[str, CocoScores]) -> list[str]:
    """What must be known of the numbers; what holds of one model only is said to."""
    each = {kind: notes_of(own) for kind, own in scores.items()}
    every = list(dict.fromkeys(note for own in each.values() for note in own))
    told = []
    for note in every:
        holds = [kind for kind, own in each.items() if note in own]
        told.append(note if len(holds) == len(each) else f"{' and '.join(holds)} only: {note}")
    return told


def notes_of(scores: CocoScores) -> list[str]:
    missing: dict[str, list[str]] = {}
    for metric, why in scores.missing.items():
        missing.setdefault(why, []).append(metric)
    said = [
        f"{', '.join(own)} {'is' if len(own) == 1 else 'are'} missing: {why}"
        for why, own in missing.items()
    ]
    return [*said, *scores.notes]
