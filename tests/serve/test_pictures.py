"""Pictures that are sent to a server: seen by the network that a captioner learnt from."""

import json

import pytest

import langevin
from langevin.errors import LangevinError
from langevin.posterior.selection import Selection
from langevin.serve.limits import Limits
from langevin.serve.pictures import features_of_picture
from langevin.serve.problems import Problem
from langevin.serve.server import Service
from tests.tiny_pictures import train_tiny, write_network

pytest.importorskip("PIL")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served-pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANGEVIN_CACHE", str(folder / "cache"))
        return train_tiny(folder)


def test_a_captioner_brings_its_own_network(trained):
    service = Service()
    service.load([trained / "run"], Selection())
    service.add_extractor(None, None)
    served = service.models["run"]
    sent = (trained / "pictures" / "00.png").read_bytes()
    row = features_of_picture(sent, served.extractor, Limits().pixels)
    known = json.loads((trained / "run" / "origin.json").read_text())["data"]["extractor"]
    assert served.extractor.facts() == known
    (expected,) = langevin.load(trained / "run").caption(trained / "pictures" / "00.png")
    assert served.posterior.caption(row)[0] == expected
    with pytest.raises(Problem):
        features_of_picture(sent, None, Limits().pixels)


def test_another_network_is_refused(trained, tmp_path):
    service = Service()
    service.load([trained / "run"], Selection())
    with pytest.raises(LangevinError, match="expected the extractor network of this run"):
        service.add_extractor(str(write_network(tmp_path / "other", seed=1)), None)
    service.add_extractor(str(trained / "network"), None)
    assert service.models["run"].pictures
