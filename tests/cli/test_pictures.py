"""`train --task caption` on pictures of one's own, and what can be asked of such a run."""

import json
import shutil

import numpy as np
import pytest

import langevin
from langevin.cli.train_captions import CaptionOptions
from langevin.data.features import read_features
from langevin.recipe import load_recipe
from langevin.store.check import check_folder
from langevin.store.folder import RunFolder
from langevin.training.chains import start_chains
from langevin.training.session import resume
from tests.tiny_pictures import COUNT, SHORT, TINY, train_tiny, write_network

pytest.importorskip("PIL")
pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LANGEVIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with pictures, captions, a network, and a run that learnt from them."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANGEVIN_CACHE", str(folder / "cache"))
        return train_tiny(folder)


def train(folder, captions="captions.tsv", *more):
    return ("train", "--task", "caption", "--images", folder / "pictures", "--captions",
            folder / captions, "--extractor", folder / "network", *SHORT, *more)  # fmt: skip


@pytest.fixture
def own(tmp_path, trained):
    """The same with files that may be spoilt."""
    for name in ("pictures", "network"):
        shutil.copytree(trained / name, tmp_path / name)
    shutil.copy(trained / "captions.tsv", tmp_path)
    return tmp_path


def test_a_run_keeps_features_and_knows_its_extractor(trained, cli):
    run = RunFolder(trained / "run")
    facts = run.facts
    assert facts["split_sizes"] == {"train": 24, "valid": 3, "test": 3}
    assert facts["extractor"]["name"] == "network"
    assert facts["extractor"]["width"] == facts["feature_width"] == 16
    assert facts["extractor"]["preprocess"].startswith("preprocessor_config.json ")
    kept = read_features(trained / "run" / "features.safetensors")
    assert kept.extractor == facts["extractor"]
    assert len(kept.names) == COUNT
    assert run.recipe.model.image_as == "state"
    code, printed, _ = cli("show", trained / "run", "--json")
    seen = json.loads(printed)["facts"]["pictures seen by"]
    assert (code, seen.split(",")[0]) == (0, "network")


def test_everything_works_without_the_pictures(trained, tmp_path, cli):
    shutil.copytree(trained, tmp_path / "moved")
    run = tmp_path / "moved" / "run"
    text = (run / "recipe.toml").read_text()
    (run / "recipe.toml").write_text(text.replace("/pictures", "/gone"))
    code, printed, _ = cli("evaluate", run, "--json")
    assert code == 0
    assert json.loads(printed)["averaged"]["items"] == 3 * (4 + 5)
    code, printed, _ = cli("uncertainty", run, "--json", "--top", 2)
    assert (code, len(json.loads(printed)["top"])) == (0, 2)


@pytest.mark.parametrize("exported", [False, True])
def test_pictures_are_captioned_by_the_network_of_the_training(trained, tmp_path, cli, exported):
    run, picture = trained / "run", trained / "pictures" / "00.png"
    if exported:
        code, _, told = cli("export", run, tmp_path / "export")
        assert code == 0, told
        run = tmp_path / "export"
    if exported:
        code, _, told = cli("caption", run, picture)
        assert code == 2
        assert "name its file or folder by --extractor" in told
    more = ("--extractor", trained / "network") if exported else ()
    code, printed, told = cli("caption", run, picture, "--json", "--top", 1, *more)
    assert code == 0, told
    posterior = langevin.load(run)
    row = read_features(trained / "run" / "features.safetensors").values[:1]
    (known,) = posterior.caption(row)
    assert json.loads(printed)["images"][0]["captions"][0]["log_p"] == pytest.approx(known.log_p)
    if not exported:
        from PIL import Image

        pixels = np.asarray(Image.open(picture))
        for images in (picture, [str(picture)], pixels, [pixels], pixels[None]):
            assert posterior.caption(images)[0].caption == known.caption


def test_another_extractor_is_refused_by_name(trained, tmp_path, cli):
    other = write_network(tmp_path / "other", seed=1)
    code, _, told = cli("caption", trained / "run", trained / "pictures" / "00.png",
                        "--extractor", other)  # fmt: skip
    assert code == 2
    assert "expected the extractor network of this run" in told
    assert "other is another" in told


def test_features_are_computed_once(own, trained, cli, monkeypatch, caplog):
    monkeypatch.setenv("LANGEVIN_CACHE", str(trained / "cache"))
    before = {path: path.read_bytes() for path in (trained / "cache").rglob("*.states")}
    assert len(before) == 1
    assert cli(*train(own), "--out", own / "run")[0] == 0
    assert "test and valid held out by a hash of the image's name" in caplog.text
    assert {path: path.read_bytes() for path in (trained / "cache").rglob("*.states")} == before


def test_chains_share_the_features_of_their_folder(own, cli):
    given = CaptionOptions(own / "pictures", own / "captions.tsv", None, str(own / "network"))
    folder = start_chains(load_recipe("captions", [*given.settings(), *TINY]), own / "run", 2)
    assert (own / "run" / "features.safetensors").is_file()
    assert not (own / "run" / "chain-0" / "features.safetensors").exists()
    shutil.rmtree(own / "pictures")
    for chain in folder.chains:
        resume(chain.path).run()
    code, printed, _ = cli("evaluate", own / "run", "--json")
    assert code == 0
    assert len(json.loads(printed)["chains"]) == 2
    code, _, told = cli("caption", own / "run", own / "captions.tsv")
    assert code == 2
    assert "is not a picture" in told


def test_features_made_by_a_run_know_their_extractor(trained, tmp_path, cli):
    code, _, told = cli(
        "train", "--captions", trained / "captions.tsv", "--features",
        trained / "run" / "features.safetensors", "--out", tmp_path / "run", *SHORT,
    )  # fmt: skip
    assert code == 0, told
    assert RunFolder(tmp_path / "run").facts["extractor"]["name"] == "network"
    assert not (tmp_path / "run" / "features.safetensors").exists()


def spoil_jpeg(own):
    (own / "pictures" / "03.png").write_bytes(b"\x89PNG no more")


def drop_picture(own):
    (own / "pictures" / "04.png").unlink()


def drop_captions(own):
    text = (own / "captions.tsv").read_text().splitlines(keepends=True)
    (own / "captions.tsv").write_text("".join(line for line in text if "05.png" not in line))


def empty_captions(own):
    text = (own / "captions.tsv").read_text().splitlines()
    lines = ["06.png\t ." if "06.png" in line else line for line in text]
    (own / "captions.tsv").write_text("\n".join(lines))


def make_gigantic(own):
    from PIL import Image

    Image.new("1", (20000, 7000)).save(own / "pictures" / "07.png")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_jpeg, "1 of 30 pictures are damaged: '03.png' (of the first"),
        (drop_picture, "1 of 30 images with captions have no picture, first '04.png'"),
        (drop_captions, "1 of 30 pictures have no captions, first '05.png'"),
        (empty_captions, "1 of 30 images of the train split have no caption"),
        (make_gigantic, "it has 20000×7000 pixels, expected at most 120,000,000"),
    ],
)
def test_what_does_not_fit_is_refused_or_left_out(own, cli, spoil, message):
    spoil(own)
    code, _, told = cli(*train(own), "--out", own / "run")
    assert code == 2
    assert message in told.replace("\n", " ")
    assert "--skip-damaged" in told
    assert not (own / "run").exists()
    code, _, told = cli(*train(own), "--out", own / "run", "--skip-damaged")
    assert code == 0, told
    assert "left out, " in told
    facts = RunFolder(own / "run").facts
    assert sum(facts["split_sizes"].values()) == COUNT - 1


def test_features_that_were_changed_are_refused(trained, tmp_path, cli):
    shutil.copytree(trained / "run", tmp_path / "run")
    path = tmp_path / "run" / "features.safetensors"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    code, _, told = cli("evaluate", tmp_path / "run")
    assert code == 2
    assert "expected the features that this run learnt from" in told
    assert not next(f for f in check_folder(tmp_path / "run") if f.file == path.name).sound
    assert all(finding.sound for finding in check_folder(trained / "run"))


@pytest.mark.parametrize("name", ["../secret.png", "/etc/passwd", "inner/../../secret.png"])
def test_a_name_that_leads_out_of_the_folder_is_refused(own, cli, name):
    with (own / "captions.tsv").open("a") as file:
        file.write(f"{name}\tA way out\n")
    (own / "secret.png").write_bytes((own / "pictures" / "00.png").read_bytes())
    for more in ((), ("--skip-damaged",)):
        code, _, told = cli(*train(own), "--out", own / "run", *more)
        assert code == 2
        assert "leads out of it" in told.replace("\n", " ")


def test_a_link_that_leads_out_of_the_folder_is_refused(own, cli):
    (own / "secret.png").write_bytes((own / "pictures" / "00.png").read_bytes())
    (own / "pictures" / "00.png").unlink()
    (own / "pictures" / "00.png").symlink_to(own / "secret.png")
    code, _, told = cli(*train(own), "--out", own / "run")
    assert code == 2
    assert "a link that leads out" in told.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--images", "x"), "got no --captions"),
        (("--task", "caption"), "expected --captions FILE with --images DIR or --features FILE"),
        (("--captions", "c.csv", "--images", "x", "--features", "f.npy"), "got both"),
        (("--captions", "c.csv", "--text", "t.txt"), "got --text too"),
        (("--captions", "c.csv", "--task", "classify"), "expected --task caption for pictures"),
        (("--captions", "c.csv", "--extractor", "n"), "expected --images DIR for the extractor n"),
        (("--captions", "nowhere.csv", "--images", "."), "which is not there"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, cli, options, message):
    code, _, told = cli("train", *options, "--out", tmp_path / "run")
    assert code == 2
    assert message in told.replace("\n", " ")
    assert "Traceback" not in told
    assert not (tmp_path / "run").exists()
