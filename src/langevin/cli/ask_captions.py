"""The command that describes pictures: caption."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..data.features import ImageFeatures, named_rows, read_features
from ..errors import LangevinError
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
from .options import takes

app = command_group()

TOP = 3
"""Captions of each image, where the beam has room."""
Beam = Annotated[int, typer.Option(help="width of the beam search")]
Top = Annotated[
    int | None,
    typer.Option(help=f"how many captions of each image (default: {TOP}, at most the beam)"),
]
PerSample = Annotated[
    int, typer.Option(min=0, help="show the captions of so many single samples too")
]


@dataclass(frozen=True)
class Source:
    """Where the images come from: pictures, or features."""

    images: Annotated[
        list[str] | None, typer.Argument(metavar="IMAGE", help="pictures; names with --features")
    ] = None
    features: Annotated[
        Path | None, typer.Option(help="image features: .npy, .npz or .safetensors")
    ] = None
    names: Annotated[
        Path | None, typer.Option(help="names of the feature rows, one a line")
    ] = None
    extractor: Annotated[
        str | None, typer.Option(help="ResNet-50 weights, or a network of transformers by folder "
                                      "or name (default: that of the training)")
    ] = None
    preprocess: Annotated[
        str | None, typer.Option(help="how ResNet-50 weights want pictures: caffe, torchvision")
    ] = None

    def check(self) -> None:
        """Refuse what does not go together."""
        for option, value in {
            "--extractor": self.extractor, "--preprocess": self.preprocess,
        }.items():  # fmt: skip
            if self.features is not None and value is not None:
                raise LangevinError(
                    f"expected pictures for {option} {value}, got --features; leave one of them out"
                )
        if self.features is None and self.names is not None:
            raise LangevinError(
                f"expected --features FILE whose rows are named in {self.names}, got none; leave "
                f"--names out"
            )
        if self.features is None and not self.images:
            raise LangevinError(
                "expected pictures or --features FILE, got neither; name an image to describe"
            )

    def read(self) -> ImageFeatures | None:
        """Features that are there already."""
        if self.features is None:
            return None
        found = read_features(self.features, self.names, named=bool(self.images))
        return named_rows(found, self.images)

    def look(self, run: CaptionPosterior, progress: Bars) -> ImageFeatures:
        """Features that the run's network makes of pictures; each picture once."""
        images = list(dict.fromkeys(self.images or []))
        extractor = run.open_extractor(self.extractor, self.preprocess)
        return run.see(images, extractor, progress.begin(len(images), "pictures"))


@app.command(epilog=example("langevin caption runs/captions photo.jpg --beam 5"))
@takes_selection
@takes("source", Source)
def caption(
    folder: Folder,
    selection: Selection,
    source: Source,
    beam: Beam = 5,
    top: Top = None,
    length_power: LengthPower = BeamSettings.length_power,
    max_length: MaxLength = 20,
    per_sample: PerSample = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Captions of images from the averaged model, with the uncertainty of each."""
    search = BeamSettings(beam, min(TOP, beam) if top is None else top, length_power, max_length)
    search.check()
    source.check()
    given = source.read()
    with Bars(quiet or as_json) as progress:
        run = open_as(CaptionPosterior, folder, selection, progress)
        given = source.look(run, progress) if given is None else given
        advance = progress.begin(len(given.names) * (1 + per_sample), "images")
        pictures = run.describe(given, search, per_sample, advance)
    say_skipped(run.opened.chosen.skipped)
    if as_json:
        told = {"run": str(folder), "samples": len(run), "beam": beam}
        print(json.dumps(told | {"images": [picture.to_dict() for picture in pictures]}))
        return
    for picture in pictures:
        screen.print(caption_table(picture, len(run), chains=run.has_chains))
