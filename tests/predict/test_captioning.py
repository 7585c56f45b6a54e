import json
import math
import shutil

import numpy as np
import pytest
import torch

from langevin.data.features import ImageFeatures
from langevin.errors import LangevinError
from langevin.predict.caption_reader import CaptionReader
from langevin.predict.captioning import BeamSettings, CaptionPosterior, sentence
from langevin.predict.load import open_as
from langevin.posterior.selection import Selection
from langevin.training.session import start
from tests.tiny_captions import ACTS, ANIMALS, tiny_recipe


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A captioner that knows its animals, with four samples."""
    folder = tmp_path_factory.mktemp("captions")
    start(tiny_recipe(folder, "epochs=24", "burn_in=20", "sample_every=1"), folder / "run").run()
    return folder / "run"


@pytest.fixture
def run(run_folder):
    return open_as(CaptionPosterior, run_folder)


def features_of_test(run):
    task = run.data
    names = task.images["test"]
    return ImageFeatures(names, task.features.take(torch.tensor([task.features.rows[n] for n in names])), "tests")


def mean_log_probs(run, features, tokens):
    """log of the mean over samples of the probability of each token after `<start>`, by the plain
    model."""
    inputs = torch.tensor([[run.vocabulary.numbers["<start>"], *tokens]])
    model, total = run.model, 0
    for sample in run.draws:
        sample.load_into(model)
        with torch.no_grad():
            total = total + torch.softmax(model.eval()(features, inputs)[0], -1)
    return (total / len(run)).log()


def test_captions_say_what_the_features_say(run):
    features = features_of_test(run)
    found = run.search(features.values, BeamSettings(length_power=0.0))
    right = [
        {ANIMALS[number % 3], ACTS[number // 3 % 3]} <= set(sentence(run.vocabulary, best).split())
        for number, (best,) in enumerate(found)
    ]
    assert sum(right) >= 8


def test_word_probabilities_are_means_over_the_samples(run):
    features = features_of_test(run)
    (best, *_), *_ = run.search(features.values[:1], BeamSettings(top=3, length_power=0.0))
    tokens = [*best.tokens, run.vocabulary.numbers["<eos>"]]
    expected = mean_log_probs(run, features.values[:1], best.tokens).gather(1, torch.tensor(tokens)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(best.log_probs), expected, rtol=1e-4, atol=1e-5)


def test_a_wide_beam_finds_the_best_of_all_captions(run):
    """Against every caption of at most two words, scored by the plain model."""
    features = features_of_test(run).values[:1]
    numbers = run.vocabulary.numbers
    end, never = numbers["<eos>"], {numbers["<start>"], numbers["<unk>"]}
    words = [n for n in range(len(numbers)) if n not in never and n != end]
    scores = {(): mean_log_probs(run, features, ())[0, end].item()}
    for first in words:
        log_p = mean_log_probs(run, features, (first,))
        scores[first,] = (log_p[0, first] + log_p[1, end]).item()
        for second in words:
            log_p = mean_log_probs(run, features, (first, second))
            scores[first, second] = (log_p[0, first] + log_p[1, second] + log_p[2, end]).item()
    search = BeamSettings(len(numbers) ** 2, top=5, length_power=0.0, max_length=2)
    found = run.search(features, search)[0]
    expected = sorted(scores, key=scores.__getitem__, reverse=True)[:5]
    assert [h.tokens for h in found] == expected
    assert math.isclose(found[0].log_prob, scores[expected[0]], rel_tol=1e-4)


def test_batches_of_images_do_not_change_captions(run, monkeypatch):
    features = features_of_test(run)
    whole = run.search(features.values, BeamSettings(top=2, length_power=0.0))
    monkeypatch.setattr("langevin.predict.captioning.IMAGES_AT_ONCE", 2)
    parts = run.search(features.values, BeamSettings(top=2, length_power=0.0))
    assert [[c.tokens for c in image] for image in whole] == [[c.tokens for c in image] for image in parts]


def test_a_wide_beam_takes_fewer_images_at_once(run, monkeypatch):
    """What is held at a time is bounded: images × beam × samples × words."""
    features, rows = features_of_test(run), []
    step = CaptionReader.go_on
    monkeypatch.setattr(CaptionReader, "go_on", lambda self, tokens: rows.append(len(tokens)) or step(self, tokens))
    run.search(features.values, BeamSettings(beam=100, length_power=0.0))
    assert max(rows) <= 320
    assert [BeamSettings(beam=beam, length_power=0.0).images_at_once for beam in (1, 5, 10, 100, 1000)] == [32, 32, 32, 3, 1]


def test_uncertainty_is_the_spread_over_samples(run, run_folder):
    settings = BeamSettings(top=2, length_power=0.0)
    picture = run.describe(features_of_test(run), settings, per_sample=2)[0]
    best = picture.captions[0]
    assert best.words[-1].word == "<eos>"
    assert math.isclose(sum(math.log(w.p) for w in best.words), best.log_p, rel_tol=1e-4)
    assert math.isclose(np.std(best.log_p_parts, ddof=1), best.log_p_std, rel_tol=1e-9)
    assert best.log_p_std > 0
    assert [c.step for c in picture.per_sample] == [run.draws[n].step for n in (1, 1, 3, 3)]
    one = open_as(CaptionPosterior, run_folder, Selection("backward", 3))
    one.draws[:] = one.draws[:1]  # the second of the four
    alone = one.describe(features_of_test(run), settings)[0].captions
    assert [c.caption for c in alone] == [c.caption for c in picture.per_sample[:2]]
    assert alone[0].log_p_std == 0


def test_the_best_caption_is_the_first_of_all(run):
    features = features_of_test(run)
    whole = run.describe(features, BeamSettings(top=2))
    best = [picture.captions[0].caption for picture in whole]
    assert [found.caption for found in run.caption(features.values)] == best


def test_the_marks_are_never_written(run):
    features = ImageFeatures(["noise"], torch.randn(1, run.width), "noise")
    for caption in run.describe(features, BeamSettings(beam=30, top=30))[0].captions:
        assert not {"<start>", "<unk>", "<eos>"} & set(caption.caption.split())


def test_the_training_data_need_not_be_there(run_folder, tmp_path, cli):
    moved = shutil.copytree(run_folder, tmp_path / "run")
    text = (moved / "recipe.toml").read_text().replace("tiny.token.txt", "gone.txt").replace("features.npy", "gone.npy")
    (moved / "recipe.toml").write_text(text)
    features = run_folder.parent / "features.npy"
    code, printed, _ = cli("caption", moved, "test4.jpg", "--features", features, "--json", "--per-sample", 2)
    assert code == 0
    told = json.loads(printed)
    assert (told["samples"], len(told["images"])) == (4, 1)
    assert "cat" in told["images"][0]["captions"][0]["caption"]
    code, printed, _ = cli("caption", moved, "--features", features, "--top", 1, "--samples", 2)
    assert code == 0
    assert "average of 2" in printed
    assert printed.count("dog") >= 9
    code, printed, _ = cli("caption", moved, "test4.jpg", "--features", features, "--beam", 2, "--json")
    # three if the beam has room
    assert (code, len(json.loads(printed)["images"][0]["captions"])) == (0, 2)


def test_bad_input_ends_with_exit_code_two(run_folder, finished_run, tmp_path, cli):
    rows = np.load(run_folder.parent / "features.npy").astype(np.float32)

    def refused(message, *arguments, values=rows):
        np.save(tmp_path / "f.npy", values)
        code, _, told = cli("caption", run_folder, "--features", tmp_path / "f.npy", *arguments)
        assert code == 2
        assert message in told
        assert "Traceback" not in told

    refused("the model takes 12 features an image", values=rows[:, :5])
    refused("3 of 45 rows", values=np.where(np.arange(45)[:, None] < 3, np.nan, rows))
    refused("2 of 45 rows", values=np.where(np.arange(45)[:, None] < 2, 1e300, rows.astype(np.float64)))
    refused("beam must be at least 1, got 0", "--beam", 0)
    refused("beam must be at most 1000, got 100000000", "--beam", 100_000_000)
    refused("at most 1000 words, got 100000000", "--max-length", 100_000_000)
    refused("expected between 1 and 5 captions from a beam of 5, got 0; ask for at least one", "--top", 0)
    refused("from a beam of 2, got 3; ask for fewer or widen the beam", "--top", 3, "--beam", 2)
    refused("expected pictures for --extractor w.npz, got --features", "--extractor", "w.npz")
    refused("expected pictures for --preprocess caffe, got --features", "--preprocess", "caffe")
    refused("between 1 and 4 samples", "--per-sample", 9)
    refused("have no names", "test0.jpg")
    refused("between 1 and 4 samples", "--samples", 9)
    code, _, told = cli("caption", finished_run, "--features", run_folder.parent / "features.npy")
    assert code == 2
    assert "expected the run of a captioner" in told
    code, _, told = cli("caption", run_folder, "test0.jpg", "--names", tmp_path / "names.txt")
    assert code == 2
    assert "expected --features FILE whose rows are named" in told
    with pytest.raises(LangevinError, match="nothing there"):
        open_as(CaptionPosterior, tmp_path / "absent")


@pytest.fixture
def coco_installed():
    pytest.importorskip("pycocoevalcap")


@pytest.mark.usefixtures("coco_installed")
def test_evaluation_with_captions(run_folder, tmp_path, cli, monkeypatch):
    # no Java: the other metrics are given, and why METEOR is not
    monkeypatch.setenv("PATH", str(tmp_path))
    out = tmp_path / "captions.json"
    code, printed, told = cli("evaluate", run_folder, "--captions", out, "--beam", 3, "--json")
    assert code == 0, told
    numbers = json.loads(printed)
    written = json.loads(out.read_text())
    assert [row["image_id"] for row in written] == [f"test{n}.jpg" for n in range(9)]
    assert len(json.loads((tmp_path / "captions-last.json").read_text())) == 9
    for kind in ("last", "averaged"):
        assert numbers[kind]["perplexity"] > 1
        assert numbers["captions"][kind]["bleu_1"] > 0.9
        assert "meteor" not in numbers["captions"][kind]
    assert "meteor is missing" in told
    assert "java" in told.lower()
    code, printed, _ = cli("evaluate", run_folder, "--captions", out, "--overwrite")
    assert code == 0
    assert "cider" in printed
