"""The command that describes pictures: caption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..data.features import named_rows, read_features
from ..errors import LangevinError
from ..models.pictures import features_of_pictures
from ..predict.captioning import BeamSettings, CaptionPosterior
from ..predict.load import open_as
from ..report.captions import caption_table
from ..report.progress import Bars
from ..report.terminal import screen
from ..posterior.selection import Selection
from .app import (
    Folder,
    Json,
    LengthPower,
    MaxLength,
    Quiet,
    command_group,
    example,
    say_skipped,
    takes_selection,
)

app = command_group()

TOP = 3
"""Captions of each image, where the beam has room."""


@app.command(epilog=example("langevin caption runs/captions --features features.npy --beam 5"))
@takes_selection
def caption(
    folder: Folder,
    selection: Selection,
    images: Annotated[
        list[str] | None, typer.Argument(metavar="IMAGE", help="pictures; names with --features")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="image features: .npy, .npz or .safetensors")
    ] = None,
    extractor: Annotated[
        Path | None, typer.Option(help="ResNet-50 weights: .npz or .safetensors")
    ] = None,
    preprocess: Annotated[
        str | None,
        typer.Option(help="how the extractor sees pictures: caffe (default) or torchvision"),
    ] = None,
    names: Annotated[
        Path | None, typer.Option(help="names of the feature rows, one a line")
    ] = None,
    beam: Annotated[int, typer.Option(help="width of the beam search")] = 5,
    top: Annotated[
        int | None,
        typer.Option(help=f"how many captions of each image (default: {TOP}, at most the beam)"),
    ] = None,
    length_power: LengthPower = BeamSettings.length_power,
    max_length: MaxLength = 20,
    per_sample: Annotated[
        int, typer.Option(min=0, help="show the captions of so many single samples too")
    ] = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Captions of images from the averaged model, with the uncertainty of each."""
    search = BeamSettings(beam, min(TOP, beam) if top is None else top, length_power, max_length)
    search.check()
    if features is not None:
        refuse_extractor(extractor, preprocess)
        given = named_rows(read_features(features, names, named=bool(images)), images)
    elif names is not None:
        raise LangevinError(
            f"expected --features FILE whose rows are named in {names}, got none; leave --names out"
        )
    elif images:
        given = features_of_pictures(
            [Path(image) for image in images], extractor, preprocess or "caffe"
        )
    else:
        raise LangevinError(
            "expected pictures or --features FILE, got neither; name an image to describe"
        )
    with Bars(quiet or as_json) as progress:
        run = open_as(CaptionPosterior, folder, selection, progress)
        advance = progress.begin(len(given.names) * (1 + per_sample), "images")
        pictures = run.describe(given, search, per_sample, advance)
    say_skipped(run.opened.chosen.skipped)
    if as_json:
        print(
            json.dumps(
                {
                    "run": str(folder),
                    "samples": len(run),
                    "beam": beam,
                    "images": [picture.to_dict() for picture in pictures],
                }
            )
        )
        return
    for picture in pictures:
        screen.print(caption_table(picture, len(run), chains=run.has_chains))


def refuse_extractor(extractor: Path | None, preprocess: str | None) -> None:
    """Features are there already: what makes them of pictures would be ignored."""
    for option, value in {"--extractor": extractor, "--preprocess": preprocess}.items():
        if value is not None:
            raise LangevinError(
                f"expected pictures for {option} {value}, got --features; leave one of them out"
            )
