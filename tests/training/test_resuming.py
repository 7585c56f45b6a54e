"""Runs whose list of samples, checkpoint or folder is not as it was left."""

import json

import pytest
import safetensors.torch

from langevin.errors import LangevinError
from langevin.store.folder import RunFolder
from langevin.training.session import resume, start
from tests.training.test_loop import fingerprint, interrupted_after


def manifest_of(folder, change):
    """Change the list of samples of a run as a crash or a hand might."""
    path = folder / "samples" / "manifest.jsonl"
    header, *lines = map(json.loads, path.read_text().splitlines())
    lines = change([{k: v for k, v in line.items() if k != "crc"} for line in lines])
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)))


CHANGES = {
    "behind": lambda samples: samples[:2],
    "empty": lambda samples: [],
    "with a gap": lambda samples: samples[:1] + samples[2:],
    "of another hash": lambda samples: [samples[0] | {"sha256": "0" * 64}, *samples[1:]],
    "told otherwise": lambda samples: [*samples[:-1], samples[-1] | {"about": {}}],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("done", [True, False])
def test_a_manifest_behind_the_checkpoint_is_mended_from_the_files(tiny, tmp_path, caplog, change, done):
    start(tiny(), tmp_path / "whole").run()
    trainer = start(tiny(), tmp_path / "cut")
    trainer.run() if done else interrupted_after(trainer, 3)
    manifest_of(tmp_path / "cut", CHANGES[change])
    resume(tmp_path / "cut").run()
    assert fingerprint(tmp_path / "cut") == fingerprint(tmp_path / "whole")
    assert f"of the {4 if done else 3} samples that the checkpoint of this run knows" in caplog.text


@pytest.mark.parametrize("content", [None, b"junk"])
def test_a_sample_that_is_lost_for_good_is_not_passed_over(tiny, tmp_path, content):
    trainer = start(tiny(), tmp_path / "r")
    interrupted_after(trainer, 3)
    victim = trainer.store.samples[-1].path
    manifest_of(tmp_path / "r", lambda samples: samples[:-1])
    victim.unlink() if content is None else victim.write_bytes(content)
    with pytest.raises(LangevinError, match=f"lists 2 of the 3 samples .* {victim.name} is not there as it was"):
        resume(tmp_path / "r")
    with pytest.raises(LangevinError, match=f"{victim.name} is not listed as the checkpoint knows it"):
        len(RunFolder(tmp_path / "r").store())
    assert len(RunFolder(tmp_path / "r").store(skip_damaged=True)) == 2
    assert RunFolder(tmp_path / "r").progress().averaged == 3


def test_checkpoints_of_older_versions_still_open(tiny, tmp_path):
    start(tiny(), tmp_path / "whole").run()
    trainer = start(tiny(), tmp_path / "r")
    interrupted_after(trainer, 3)
    folder = RunFolder(tmp_path / "r")
    tensors, progress = folder.load_checkpoint()
    known = progress.to_dict()
    assert len(known.pop("samples")) == 3
    known.pop("format")
    content = safetensors.torch.save(tensors, metadata={"progress": json.dumps(known)})
    (folder.path / "checkpoint.safetensors").write_bytes(content)
    with pytest.raises(LangevinError, match="of another run, an older one"):
        resume(tmp_path / "r")
    (folder.path / ".langevin-run.json").unlink()
    own = {"format", "sha256", "recipe_sha256", "vocabulary_sha256", "data"}
    origin = json.loads((folder.path / "origin.json").read_bytes())
    old = {key: value for key, value in origin.items() if key not in own} | origin["data"]
    (folder.path / "origin.json").write_text(json.dumps(old))
    resume(tmp_path / "r").run()
    assert fingerprint(tmp_path / "r") == fingerprint(tmp_path / "whole")


def test_what_a_killed_writer_left_unfinished_goes(tiny, tmp_path):
    run = tmp_path / "r"
    interrupted_after(start(tiny(), run), 2)
    for name in (".checkpoint.safetensors.00ff00ff.tmp", "samples/.manifest.jsonl.1.tmp",
                 "samples/.000000007.safetensors.0a.tmp", ".notes.md.00ff00ff.tmp", "samples/.mine.tmp"):
        (run / name).write_bytes(b"half")
    resume(run).run()
    assert sorted(path.name for path in run.rglob("*.tmp")) == [".mine.tmp", ".notes.md.00ff00ff.tmp"]


@pytest.mark.parametrize("name", ["../../precious.txt", "/precious.txt", "000000001.safetensors/../x", ".."])
def test_resume_removes_nothing_outside_its_folder(cli, tiny, tmp_path, name):
    start(tiny(), tmp_path / "r").run()
    precious = tmp_path / "precious.txt"
    precious.write_text("years of work")
    name = str(precious) if name == "/precious.txt" else name
    manifest_of(tmp_path / "r", lambda samples: [*samples, samples[-1] | {"file": name, "step": 10**6}])
    code, _, messages = cli("resume", tmp_path / "r")
    assert code == 2
    assert "manifest.jsonl" in messages
    assert precious.read_text() == "years of work"


def test_links_out_of_a_run_are_not_followed(cli, tiny, tmp_path):
    run = tmp_path / "r"
    start(tiny(), run).run()
    for name in ("checkpoint.safetensors", "samples", "origin.json", "vocabulary.json", "recipe.toml"):
        moved = (run / name).rename(tmp_path / "moved")
        (run / name).symlink_to(moved)
        code, _, messages = cli("resume", run)
        assert code == 2
        assert "leads out of it" in messages
        (run / name).unlink()
        moved.rename(run / name)
    assert cli("resume", run)[0] == 0
