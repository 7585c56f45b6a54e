"""A finished run made longer ends as if it had been that long from the start, bit for bit, or says
why not."""

import json
import re

import pytest

from langevin.errors import LangevinError
from langevin.store.folder import RunFolder
from langevin.training.extension import extend
from langevin.training.session import resume, start
from tests.training.test_loop import fingerprint, interrupted_after
from tests.training.test_plateau import PLATEAU, falling

__all__ = ["falling"]


def longer(path, epochs):
    said = extend(path, epochs)
    resume(path).run()
    return said


def same(one, other):
    """Samples, states and curves; the recipe says the same, and its checksum is known."""
    assert fingerprint(one) == fingerprint(other)
    assert (one / "recipe.toml").read_bytes() == (other / "recipe.toml").read_bytes()
    assert not RunFolder(one).recipe_is_edited


@pytest.mark.parametrize("setting", [[], ["sample=mean"], ["lr_schedule=step", "decay_after=3", "dropout=0.2"]])
def test_a_constant_rate_goes_on_from_its_end(tiny, tmp_path, setting):
    start(tiny("epochs=8", *setting), tmp_path / "at-once").run()
    start(tiny("epochs=4", *setting), tmp_path / "longer").run()
    samples = [s.sha256 for s in RunFolder(tmp_path / "longer").store().read()]
    assert "goes on from epoch 4 to 8" in longer(tmp_path / "longer", 8)
    same(tmp_path / "longer", tmp_path / "at-once")
    assert [s.sha256 for s in RunFolder(tmp_path / "longer").store().read()][: len(samples)] == samples


def test_a_plateau_goes_on_from_where_the_rate_fell(falling, tmp_path):
    start(falling("epochs=8"), tmp_path / "at-once").run()
    start(falling("epochs=4"), tmp_path / "longer").run()
    said = longer(tmp_path / "longer", 8)
    assert "goes on from epoch 2, where its rate began to fall, to 8" in said
    same(tmp_path / "longer", tmp_path / "at-once")
    assert RunFolder(tmp_path / "longer").choice() == RunFolder(tmp_path / "at-once").choice()


def test_twice(falling, tmp_path):
    start(falling("epochs=5"), tmp_path / "at-once").run()
    start(falling("epochs=2"), tmp_path / "longer").run()
    longer(tmp_path / "longer", 3)
    longer(tmp_path / "longer", 5)
    same(tmp_path / "longer", tmp_path / "at-once")


def test_cut_off_while_it_was_made_longer(falling, tmp_path, monkeypatch):
    """Between the checkpoint and the recipe: the run falls once more and ends as it did."""
    start(falling("epochs=4"), tmp_path / "r").run()
    before = fingerprint(tmp_path / "r")
    with monkeypatch.context() as cut:
        cut.setattr("langevin.store.writer.RunWriter.amend", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            extend(tmp_path / "r", 8)
    resume(tmp_path / "r").run()
    assert fingerprint(tmp_path / "r") == before


def test_what_cannot_be_made_longer_is_refused(tiny, falling, tmp_path):
    trainer = start(tiny(), tmp_path / "r")
    interrupted_after(trainer, 1)
    with pytest.raises(LangevinError, match="expected a finished run"):
        extend(tmp_path / "r", 8)
    resume(tmp_path / "r").run()
    with pytest.raises(LangevinError, match=r"more epochs than the 2 .*, got 2; ask for more"):
        extend(tmp_path / "r", 2)
    start(falling(), tmp_path / "p").run()
    (tmp_path / "p" / "plateau.safetensors").unlink()
    before = fingerprint(tmp_path / "p")
    with pytest.raises(LangevinError, match=r"the end of the plateau .* is not there; train a new run"):
        extend(tmp_path / "p", 8)
    assert fingerprint(tmp_path / "p") == before


def test_a_run_that_stopped_early_stays_as_it_is(tiny, tmp_path):
    start(tiny("patience=1", "epochs=6", "lr=0.5", "clip=norm"), tmp_path / "r").run()
    before = fingerprint(tmp_path / "r")
    assert "so nothing was changed" in extend(tmp_path / "r", 20)
    assert fingerprint(tmp_path / "r") == before
    assert RunFolder(tmp_path / "r").recipe.run.epochs == 6


def test_a_recipe_that_was_edited_is_said_to_be(tiny, tmp_path):
    start(tiny("epochs=3"), tmp_path / "r").run()
    recipe = tmp_path / "r" / "recipe.toml"
    recipe.write_text(re.sub(r"clip_norm = [0-9.]+", "clip_norm = 4.0", recipe.read_text()))
    assert "its recipe was edited since it began" in extend(tmp_path / "r", 4)
    assert RunFolder(tmp_path / "r").recipe_is_edited


def test_the_command(cli, text_file, tmp_path):
    settings = [argument for key in PLATEAU for argument in ("--set", key)]
    run = tmp_path / "r"
    assert cli("train", "--text", text_file, "--out", run, *settings, "--epochs", "2", "--quiet")[0] == 0
    code, printed, messages = cli("resume", run, "--epochs", "3", "--json")
    assert code == 0
    assert "goes on from epoch 1, where its rate began to fall, to 3" in messages
    assert json.loads(printed)["finished"]
    assert RunFolder(run).recipe.run.epochs == 3
