"""BLEU, METEOR, ROUGE-L and CIDEr of a run on one of its splits: of the averaged model and of the last sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .captioning import AveragedDecoder, Captioning, Search, search_captions, sentence
from .coco import CocoScores, evaluate_captions, write_coco_results
from .errors import LangevinError
from .posterior.ensemble import Ensemble
from .tasks.caption import CaptionTask
from .workflow import Begin, Selection, open_run_task


def add_caption_scores(
    result: dict[str, Any], selection: Selection, search: Search, out: Path, begin: Begin = lambda n: lambda: None
) -> dict[str, Any]:
    """The result of an evaluation with the COCO metrics added to `single` and `averaged`.

    The captions go to `out` and, those of the last sample, to the same name with `-last`, in COCO's results format,
    before they are scored: nothing is lost when a metric fails.
    """
    run = Captioning.open(Path(result["run"]), selection)
    task = open_run_task(run.folder)
    assert isinstance(task, CaptionTask)
    names = task.images.get(result["split"])
    if names is None:
        raise LangevinError(f"--captions needs one of the run's splits, {', '.join(task.images)}; leave --text out")
    advance = begin(2 * len(names))
    features = task.features.take(torch.tensor([task.features.rows[name] for name in names]))
    files = {"averaged": out, "single": out.with_name(f"{out.stem}-last{out.suffix}")}
    ensembles: dict[str, Ensemble] = {"averaged": run.ensemble, "single": run.single(run.samples[-1])}
    captions = {}
    for kind, ensemble in ensembles.items():
        found = search_captions(AveragedDecoder(ensemble), run.vocabulary, features, search, advance)
        best = (sentence(run.vocabulary, hypotheses[0]) for hypotheses in found)
        captions[kind] = dict(zip(names, best, strict=True))
        write_coco_results(files[kind], captions[kind])
    references = {name: task.captions.texts[name] for name in names}
    scores = {kind: evaluate_captions(references, written) for kind, written in captions.items()}
    return result | {kind: result[kind] | scores[kind].metrics for kind in scores} | {
        "captions": {kind: str(path) for kind, path in files.items()},
        "beam": search.beam, "tokenizer": scores["averaged"].tokenizer, "notes": notes(scores["averaged"]),
    }


def notes(scores: CocoScores) -> list[str]:
    return [*(f"{metric} is missing: {why}" for metric, why in scores.missing.items()), *scores.notes]
