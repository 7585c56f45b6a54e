"""Captions of many images: all samples at once, against one, and one after another.

`python -m benchmarks.captioning [--images 1000] [--samples 17] [--rounds 3] [--run DIR] [--json
FILE]`: with a run, its samples caption the images of its test split, which its data must be there
for, in at most 20 words. Without, weights and features are random, weights of the shape of the
Flickr8k recipes, and every caption has 12 words. Ratios within one run; times on one machine mean
little elsewhere. The single picture is timed from its features on: the extractor comes on top.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from langevin.data.captions import START
from langevin.data.vocabulary import END, UNKNOWN, Vocabulary
from langevin.files import write_atomic
from langevin.models.captioner import Captioner
from langevin.models.reader import Reader
from langevin.models.stacked import reorder
from langevin.posterior.ensemble import Ensemble
from langevin.predict.caption_reader import CaptionReader
from langevin.predict.captioning import BeamSettings, CaptionPosterior, search_captions
from langevin.predict.load import open_as
from langevin.process import prepare_process
from langevin.store.manifest import commit
from langevin.tasks.captioning import CaptionTask, build_captioner
from langevin.posterior.selection import Selection

from .timing import Contender, interleave, ratio, timed

WORDS, WIDTH, HIDDEN = 2537, 2048, 512
RANDOM_LENGTH = 12
"""Words of a caption of random models, which never end one by themselves."""
MOST, LEAST, SECONDS = 14.0, 1.2, 2.0
"""What is wanted: at most so many times one sample, at least so much faster than one after another,
one picture."""


class OneAfterAnother:
    """The same parts from plain models that are run in turn, each with torch's fused kernels."""

    def __init__(self, models: Sequence[Captioner], start: int) -> None:
        self.models, self.start, self.carries = models, start, list[object]()
        self.log_p = torch.empty(len(models), 0, 0)

    @property
    def weights(self) -> Tensor:
        return torch.full(self.log_p.shape[:2], 1 / len(self.models))

    def begin(self, rows: int, given: Tensor | None = None) -> None:
        assert given is not None
        self.carries = [model.begin(given) for model in self.models]
        self.go_on(torch.full((rows,), self.start))

    def foresee(self) -> Tensor:
        return self.log_p

    def read(self, tokens: Tensor) -> Tensor:
        wanted = tokens[:, 0].expand(len(self.models), -1)[..., None]
        scored = self.log_p.gather(-1, wanted)
        self.go_on(tokens[:, 0])
        return scored

    def go_on(self, tokens: Tensor) -> None:
        each = []
        for number, model in enumerate(self.models):
            logits, self.carries[number] = model.step(tokens, self.carries[number])  # type: ignore[arg-type]
            each.append(torch.log_softmax(logits, -1))
        self.log_p = torch.stack(each)

    def take(self, rows: Tensor) -> None:
        self.carries = [reorder(carry, rows) for carry in self.carries]
        self.log_p = self.log_p.index_select(1, rows)

    def join(self, other: Reader) -> None:
        raise AssertionError("no benchmark joins")


def random_models(samples: int) -> list[Captioner]:
    """Models of the shape of the recipes that never end a caption by themselves."""
    models = []
    for seed in range(samples):
        torch.manual_seed(seed)
        model = Captioner(WIDTH, WORDS + 3, cell="lstm", embed=HIDDEN, hidden=HIDDEN, layers=1).eval()
        model.output.bias.data[0] = -10.0
        models.append(model.requires_grad_(False))
    return models


def models_of(run: CaptionPosterior) -> list[Captioner]:
    """A model for each sample of a trained run."""
    models = []
    for sample in run.draws:
        model = build_captioner(run.recipe, run.width, len(run.vocabulary)).eval().requires_grad_(False)
        sample.load_into(model)
        models.append(model)
    return models


def features_of(run: CaptionPosterior, images: int) -> Tensor:
    """Of the first images of the test split that the run was made for."""
    task = run.data
    assert isinstance(task, CaptionTask)
    return task.features.take(torch.tensor([task.features.rows[name] for name in task.images["test"][:images]]))


def random_features(images: int) -> Tensor:
    return torch.rand(images, WIDTH, generator=torch.Generator().manual_seed(0))


def measure(
    models: Sequence[Captioner], vocabulary: Vocabulary, features: Tensor, search: BeamSettings, rounds: int
) -> dict[str, object]:
    """Seconds of each way, the three ratios, and whether they are what is wanted."""
    together, alone = (
        CaptionReader(Ensemble(models[0], some, plan="batched"), vocabulary.numbers[START])
        for some in (list(models), [models[-1]])
    )
    turns = OneAfterAnother(models, vocabulary.numbers[START])
    ways = {"all at once": together, "one sample": alone, "one after another": turns}

    def all_images(decoder: Reader) -> list[tuple[int, ...]]:
        return [found[0].tokens for found in search_captions(decoder, vocabulary, features, search)]

    contenders = [Contender(name, timed(lambda d=decoder: all_images(d))) for name, decoder in ways.items()]
    one = timed(lambda: search_captions(together, vocabulary, features[:1], search))
    contenders.append(Contender("one picture", one))
    same = [a == b for a, b in zip(all_images(together), all_images(turns), strict=True)]
    seconds = interleave(contenders, rounds=rounds, seconds=None)
    cost = ratio(seconds["all at once"], seconds["one sample"])
    gain = ratio(seconds["one after another"], seconds["all at once"])
    return {
        "images": len(features), "samples": len(models), "beam": search.beam, "max_length": search.max_length,
        "threads": torch.get_num_threads(),
        "same_captions": sum(same) / len(same), "seconds": {name: s["median"] for name, s in seconds.items()},
        "all_at_once_to_one_sample": cost, "one_after_another_to_all_at_once": gain,
        "kept": {
            f"at most {MOST:g} times one sample": cost["ratio"] <= MOST,
            f"at least {LEAST:g} times faster than in turn": gain["ratio"] >= LEAST,
            f"one picture within {SECONDS:g} s": seconds["one picture"]["median"] < SECONDS,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, value in {"images": 1000, "samples": 17, "beam": 5, "rounds": 3, "threads": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--words", type=int, help="of the longest caption (20 of a run, 12 without)")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--run", type=Path, default=None, help="a trained run instead of random weights")
    given = parser.parse_args()
    prepare_process()
    if given.run is None:
        vocabulary = Vocabulary("word", [END, *(f"w{number}" for number in range(WORDS)), UNKNOWN, START])
        models, features = random_models(given.samples), random_features(given.images)
    else:
        run = open_as(CaptionPosterior, given.run, Selection(samples=given.samples))
        vocabulary, models, features = run.vocabulary, models_of(run), features_of(run, given.images)
    torch.set_num_threads(given.threads)  # after the run, whose recipe has a number of its own
    longest = RANDOM_LENGTH if given.run is None else BeamSettings.max_length
    search = BeamSettings(given.beam, length_power=0.0, max_length=given.words or longest)
    about = {"run": given.run and given.run.name, "commit": commit()}
    result = measure(models, vocabulary, features, search, given.rounds) | about
    print(json.dumps(result, indent=1))
    if given.json:
        write_atomic(given.json, json.dumps(result, indent=1).encode())


if __name__ == "__main__":
    main()
