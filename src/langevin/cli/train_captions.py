"""The options of `train` for captioned pictures, and what comes before such a training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import LangevinError
from ..recipe import CaptionData, Recipe
from ..recipe.load import toml_value
from ..report.progress import Bars
from ..report.terminal import messages
from ..tasks.pictures import open_pictures

@dataclass(frozen=True)
class CaptionOptions:
    """What was said of pictures and captions."""

    images: Annotated[
        Path | None, typer.Option(help="folder of pictures; with --captions")
    ] = None
    captions: Annotated[
        Path | None, typer.Option(help="of pictures: CSV, TSV, COCO's or Karpathy's JSON")
    ] = None
    features: Annotated[
        Path | None,
        typer.Option(help="of the pictures, instead of --images: .npy, .npz, .safetensors"),
    ] = None
    extractor: Annotated[
        str | None,
        typer.Option(help="makes features of pictures: ResNet-50 weights, or a network of "
                          "transformers by folder or name"),
    ] = None
    preprocess: Annotated[
        str | None, typer.Option(help="how ResNet-50 weights want pictures: caffe, torchvision")
    ] = None
    skip_damaged: Annotated[
        bool,
        typer.Option("--skip-damaged", help="leave out pictures that are damaged, missing or "
                                            "without captions"),
    ] = False

    @property
    def given(self) -> bool:
        return self != CaptionOptions()

    def check(self, task: str | None, recipe: str | None, others: dict[str, Path | None]) -> None:
        """Refuse what does not go together; `others` are options of other tasks."""
        wanted = "--captions FILE with --images DIR or --features FILE"
        named = [option for option, path in others.items() if path is not None]
        if (self.given or task == "caption") and named:
            raise LangevinError(f"expected {wanted}, got {named[0]} too, which is for another "
                                f"task; leave one of them out")
        if self.given and task not in (None, "caption"):
            raise LangevinError(f"expected --task caption for pictures, got {task}; leave it out")
        if self.images is not None and self.features is not None:
            raise LangevinError("expected either --images or --features, got both; leave one out")
        if self.captions is None and recipe is None and (self.given or task == "caption"):
            raise LangevinError(f"expected {wanted}, got no --captions; name the file of captions")
        extractor = self.extractor or self.preprocess
        if extractor is not None and self.images is None:
            raise LangevinError(f"expected --images DIR for the extractor {extractor}, got none; "
                                f"name the folder of the pictures")

    def settings(self) -> list[str]:
        """As overrides of recipe keys; quoted, as names may look like numbers."""
        paths = {"corpus": self.captions, "images": self.images, "features": self.features}
        given: dict[str, Any] = {k: str(path.resolve()) for k, path in paths.items() if path}
        given |= {"extractor": self.extractor} if self.extractor else {}
        given |= {"preprocess": self.preprocess} if self.preprocess else {}
        given |= {"allow_missing": True} if self.skip_damaged else {}
        return [f"{key}={toml_value(value)}" for key, value in given.items()]


def look_at_pictures(recipe: Recipe, quiet: bool) -> None:
    """Compute the features of a recipe's pictures, or find them computed; say what is left out."""
    data = recipe.data
    if isinstance(data, CaptionData) and data.images is not None and data.features is None:
        try:
            with Bars(quiet) as progress:
                open_pictures(data, progress=progress, say=True)
        except KeyboardInterrupt:
            messages.print("stopped; features that were computed are kept, the same command goes "
                           "on there", soft_wrap=True)  # fmt: skip
            raise typer.Exit(130) from None
