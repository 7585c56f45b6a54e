import json

import numpy as np
import pytest

from langevin.data.catalogue import DATASETS
from langevin.data.features import named_rows, read_features
from langevin.errors import LangevinError
from langevin.models.extractor import open_extractor
from langevin.models.pictures import features_of_pictures
from langevin.models.state_cache import StateCache
from langevin.process import Progress
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.tasks import open_task
from tests.tiny_pictures import write_network, write_pictures


def test_without_the_network_it_says_where_it_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    with pytest.raises(LangevinError, match=r"resnet50 is not there.*resnet50_v1_f16.npz.*--extractor"):
        open_extractor()


def test_an_unknown_way_to_read_pictures_is_refused_first(tmp_path, monkeypatch):
    monkeypatch.setenv("LANGEVIN_DATA", str(tmp_path))
    with pytest.raises(LangevinError, match=r'expected preprocess "caffe" .* got "keras"'):
        open_extractor(preprocess="keras")


class Interrupting(Progress):
    """Ctrl-C after so many parts; counts those that were done."""

    def __init__(self, after):
        self.after, self.done = after, 0

    def begin(self, total, parts="samples"):
        def advance():
            self.done += 1
            if self.done == self.after:
                raise KeyboardInterrupt

        return advance


def test_who_is_interrupted_goes_on_there(tmp_path, monkeypatch):
    """What was computed before is not computed again, and the features are the same."""
    pytest.importorskip("PIL")
    pytest.importorskip("transformers")
    monkeypatch.setattr("langevin.models.pictures.KEPT_AT_ONCE", 8)
    names = [name for name, _ in write_pictures(tmp_path / "pictures", 20)[::2]]
    paths = {name: tmp_path / "pictures" / name for name in names}
    extractor = open_extractor(str(write_network(tmp_path / "network")))
    cut, whole = StateCache(tmp_path / "cut", 1 << 20), StateCache(tmp_path / "whole", 1 << 20)
    with pytest.raises(KeyboardInterrupt):
        features_of_pictures(paths, extractor, cache=cut, progress=Interrupting(19))
    assert len(list(cut.folder.glob("*.safetensors"))) == 2
    again, _ = features_of_pictures(paths, extractor, cache=cut)
    straight, _ = features_of_pictures(paths, extractor, cache=whole)
    assert again.sha256() == straight.sha256()
    assert len(list(cut.folder.glob("*.safetensors"))) == 3


@pytest.mark.data
def test_pictures_give_the_stored_features(real_data, tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.setenv("LANGEVIN_CACHE", str(tmp_path))
    paths = sorted((real_data / "flickr8k" / "images").glob("*.jpg"))[:2]
    made, damaged = features_of_pictures({str(path): path for path in paths}, open_extractor())
    assert not damaged
    known = DATASETS["flickr8k"]
    stored = named_rows(read_features(known.folder / known.files["features"].name), [path.name for path in paths])
    assert made.names == [str(path) for path in paths]
    away = np.abs(made.values.float().numpy() - stored.values.float().numpy()).max(1) / stored.values.float().numpy().max(1)
    assert (away < 0.02).all()


@pytest.mark.data
def test_a_photograph_is_captioned_from_end_to_end(real_data, tmp_path, cli):
    """With a model of random weights: the words mean nothing, the same picture gives the same words
    either way."""
    pytest.importorskip("PIL")
    task = open_task(load_recipe("flickr8k-rmsprop", ["hidden=16", "threads=1"]))
    folder = RunFolder.create(tmp_path / "run", task.recipe, task.vocabulary, task.facts)
    folder.store().append(task.build_model(), 1)
    path = next(iter(sorted((real_data / "flickr8k" / "images").glob("*.jpg"))))
    code, printed, _ = cli("caption", tmp_path / "run", path, "--json", "--top", 1)
    assert code == 0
    features = DATASETS["flickr8k"].folder / DATASETS["flickr8k"].files["features"].name
    code, stored, _ = cli("caption", tmp_path / "run", path.name, "--features", features, "--json", "--top", 1)
    one, other = (json.loads(text)["images"][0]["captions"][0] for text in (printed, stored))
    assert one["caption"] == other["caption"]
    assert abs(one["log_p"] - other["log_p"]) < 0.05
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(path.read_bytes()[:2000])
    code, _, told = cli("caption", tmp_path / "run", broken)
    assert code == 2
    assert "broken.jpg" in told
