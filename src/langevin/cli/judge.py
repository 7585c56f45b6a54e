"""Commands that judge a run: evaluate, uncertainty, diagnose; others are in `judge_classes`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LangevinError
from ..predict.caption_scores import caption_metrics, check_request
from ..predict.captioning import BeamSettings, CaptionPosterior
from ..predict.classification import ClassificationPosterior
from ..predict.diagnosis import diagnose_runs
from ..predict.draws import write_netcdf
from ..predict.foreign import foreign_text
from ..predict.language import LanguagePosterior
from ..predict.load import open_as, open_posterior
from ..predict.ranking import TOKENS
from ..predict.results import Evaluation
from ..predict.sentence_map import map_sentences
from ..report.diagnosis import diagnosis_page
from ..report.figures import refuse_figure
from ..report.foreign import foreign_page
from ..report.progress import Bars
from ..report.sentences import draw_sentence_map
from ..report.tables import (
    curve_table,
    evaluation_tables,
    gain_in_words,
    models_table,
    unfinished_in_words,
)
from ..report.terminal import messages, screen, text_table
from ..report.uncertain import uncertainty_tables
from ..posterior.selection import Selection
from ..training.averaging import open_passes
from ..training.engines import LOCAL
from .app import (
    MASKS,
    Discard,
    Folder,
    Json,
    LengthPower,
    MaxLength,
    On,
    Overwrite,
    Quiet,
    SkipDamaged,
    Split,
    Tokens,
    command_group,
    example,
    say_skipped,
    say_unknown,
    takes_selection,
)
from .options import takes

app = command_group()

Masks = Annotated[
    int | None,
    typer.Option(min=1, max=MASKS, help="average K dropout masks of the last sample"),
]


@dataclass(frozen=True)
class CaptionScoring:
    """Captions of a whole split, written to a file and scored."""

    captions: Annotated[
        Path | None, typer.Option(help="caption the split into this file, with BLEU … CIDEr")
    ] = None
    beam: Annotated[int, typer.Option(help="width of the beam search for --captions")] = 5
    length_power: LengthPower = BeamSettings.length_power
    max_length: MaxLength = 20

    @property
    def search(self) -> BeamSettings:
        return BeamSettings(
            self.beam, length_power=self.length_power, max_length=self.max_length
        )


@app.command(epilog=example("langevin evaluate runs/my --split test"))
@takes_selection
@takes("written", CaptionScoring)
def evaluate(
    folder: Folder,
    selection: Selection,
    split: Split = "test",
    *,
    text: Annotated[
        Path | None, typer.Option(help="score this text file instead of a split")
    ] = None,
    mc_dropout: Masks = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="all three collections by number of samples")
    ] = False,
    written: CaptionScoring,
    overwrite: Overwrite = False,
    weight_average: Annotated[
        bool, typer.Option("--weight-average", help="the mean of the weights beside")
    ] = False,
    student: Annotated[
        Path | None, typer.Option(metavar="DIR", help="a distilled run beside, with costs")
    ] = None,
    on: On = LOCAL,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Metrics of the last sample and of the averaged model."""
    captions, search = written.captions, written.search
    if captions is not None:
        check_request(
            folder, captions, search, text=text, mc_dropout=mc_dropout, overwrite=overwrite
        )
    if on != LOCAL and (text or mc_dropout):
        raise LangevinError("expected a split and samples for --on, got --text or --mc-dropout")
    with open_passes(on, folder) as across, Bars(quiet or as_json) as progress:
        posterior = open_posterior(folder, selection, progress)
        result = posterior.evaluate(
            split, text=text, curve=curve, masks=mc_dropout, middle=weight_average,
            student=student, progress=progress, across=across,
        )  # fmt: skip
        if captions is not None and isinstance(posterior, CaptionPosterior):
            found = caption_metrics(posterior, result.split, search, captions, progress)
            result = replace(result, captions=found)
    say_notes(result, only_samples=on != LOCAL and posterior.pools)
    print(json.dumps(result.to_dict())) if as_json else show_evaluation(result)


def say_notes(result: Evaluation, *, only_samples: bool) -> None:
    """What was left out, with JSON too."""
    say_skipped(result.skipped)
    if only_samples:
        messages.print("averaged on the cluster; the other members of this run are told without "
                       "--on", style="yellow", soft_wrap=True)  # fmt: skip
    for note in result.captions.notes if result.captions else ():
        messages.print(note, style="yellow", soft_wrap=True)


def show_evaluation(result: Evaluation) -> None:
    """All tables, then in words whether averaging helped."""
    sheets = evaluation_tables(result)
    sheets += [curve_table(result.curve, result.score)] if result.curve else []
    sheets += [models_table(result.models)] if result.models else []
    for sheet in sheets:
        screen.print(text_table(sheet))
    screen.print(gain_in_words(result), soft_wrap=True)
    if result.verdict:
        screen.print(result.verdict, soft_wrap=True)
    if result.task == "caption" and result.captions is None:
        messages.print("BLEU, METEOR, ROUGE-L and CIDEr: add --captions FILE")
    say_unknown(result.averaged.unknown_share or 0.0)
    if unfinished := unfinished_in_words(result):
        messages.print(unfinished, style="yellow", soft_wrap=True)


@app.command(epilog=example("langevin uncertainty runs/my --top 5"))
@takes_selection
def uncertainty(
    folder: Folder,
    selection: Selection,
    split: Split = "test",
    top: Annotated[int, typer.Option(min=0, help="list so many of the most uncertain items")] = 20,
    by: Annotated[
        str | None,
        typer.Option(
            help="rank by mutual_information, entropy, standard_deviation or max_probability"
        ),
    ] = None,
    tokens: Tokens = TOKENS,
    text: Annotated[
        Path | None, typer.Option(help="how foreign this text file is to a language model")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="draw all sentences of a classifier by t-SNE, the listed ones circled"),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """What a run is unsure of: words, sentences or captions; and how far to believe it."""
    if text is not None:
        return foreignness(folder, selection, text, split, top, tokens, quiet, as_json)
    refuse_figure(figure, overwrite=overwrite)
    with Bars(quiet or as_json) as progress:
        posterior = (
            open_posterior(folder, selection, progress) if figure is None
            else open_as(ClassificationPosterior, folder, selection, progress)
        )  # fmt: skip
        result = posterior.rank(split, tokens=tokens, top=top, by=by, progress=progress).result
        if figure is not None and isinstance(posterior, ClassificationPosterior):
            draw_sentence_map(figure, map_sentences(posterior, top, result.by, split, progress))
    say_skipped(result.skipped)
    if as_json:
        print(json.dumps(result.to_dict()))
        return
    for sheet in uncertainty_tables(result):
        screen.print(text_table(sheet))


def foreignness(
    folder: Path, selection: Selection, text: Path, split: str, top: int, tokens: int, quiet: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """What `uncertainty --text` prints."""
    with Bars(quiet or as_json) as progress:
        posterior = open_as(LanguagePosterior, folder, selection, progress)
        result = foreign_text(
            posterior, text, split=split, top=top, tokens=tokens, progress=progress
        )
    say_skipped(posterior.opened.chosen.skipped)
    say_unknown(result.unknown_share)
    print(json.dumps(result.to_dict())) if as_json else screen.print(foreign_page(result))


@app.command(epilog=example("langevin diagnose runs/chains"))
def diagnose(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="runs of one recipe, or a folder of chains")
    ],
    split: Annotated[str, typer.Option(help="the held-out split: valid, test or train")] = "valid",
    discard: Discard = 0,
    batches: Annotated[
        int, typer.Option(min=0, help="training batches for each sample's gradient; 0: none")
    ] = 8,
    full_gradient: Annotated[
        bool, typer.Option("--full-gradient", help="all training batches instead")
    ] = False,
    probes: Annotated[int, typer.Option(min=1, help="how many single predictions to follow")] = 16,
    netcdf: Annotated[
        Path | None, typer.Option(help="write the draws for ArviZ into this file")
    ] = None,
    skip_damaged: SkipDamaged = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """How well chains mix, how far they go, how hot they are, and a verdict in words."""
    with Bars(quiet or as_json) as progress:
        found, draws = diagnose_runs(
            folders,
            split=split,
            discard=discard,
            batches=None if full_gradient else batches,
            probes=probes,
            skip_damaged=skip_damaged,
            progress=progress,
        )
    if netcdf is not None:
        write_netcdf(draws, netcdf, {"runs": ", ".join(found.runs), "split": split})
    say_skipped(found.skipped)
    print(json.dumps(found.to_dict())) if as_json else screen.print(diagnosis_page(found))
