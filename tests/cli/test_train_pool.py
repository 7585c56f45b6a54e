"""The command that adds counts to a finished run, and the export that takes them along or not."""

import json
import shutil

import pytest

import langevin
from langevin.errors import LangevinError
from langevin.store.folder import RunFolder
from langevin.store.members import has_members, read_members
from langevin.training.members import add_members


@pytest.fixture(scope="module")
def pooled(finished_run, tmp_path_factory):
    """A finished run with counts."""
    out = tmp_path_factory.mktemp("pooled") / "night"
    shutil.copytree(finished_run, out)
    add_members(RunFolder(out))
    return out


def test_members_are_added_and_weighed(cli, pooled):
    code, said, _ = cli("pool", pooled, "--quiet")
    assert code == 0
    assert "counts of up to" in said
    assert "equal, as" in said, "285 tokens of validation are too few"
    code, said, _ = cli("pool", pooled, "--json")
    assert code == 0
    told = json.loads(said)
    assert told["weights"] == {"network": 0.5, "counts": 0.5}
    assert not told["weighed"]
    assert set(told["nll"]) == {"network", "counts", "pool"}


def test_a_damaged_member_is_made_again(cli, pooled):
    record = pooled / "members" / "members.json"
    sound = record.read_bytes()
    record.write_text("{}")
    assert cli("check", pooled)[0] == 2
    assert cli("pool", pooled, "--quiet")[0] == 0
    assert record.read_bytes() == sound
    assert cli("check", pooled)[0] == 0


def test_only_run_folders(cli, tmp_path):
    code, _, said = cli("pool", tmp_path)
    assert code == 2
    assert "expected a run folder" in said


def test_linear_parts_join_a_classifier(cli, classifier_run, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(classifier_run, run)
    code, said, _ = cli("pool", run, "--quiet")
    assert code == 0
    assert "linear part over n-grams" in said
    told = json.loads(cli("pool", run, "--json")[1])
    assert set(told["weights"]) == {"network", "n-grams"}
    assert set(told["nll"]) == {"network", "n-grams", "pool"}


def test_an_export_leaves_the_text_out_unless_told(cli, pooled, tmp_path):
    command = ("export", pooled, tmp_path / "plain", "--no-evaluate")
    assert cli(*command)[0] == 0
    assert not has_members(tmp_path / "plain")
    assert "contain the text" not in (tmp_path / "plain" / "README.md").read_text()
    code, _, said = cli("export", pooled, tmp_path / "whole", "--no-evaluate", "--with-counts")
    assert code == 0
    assert "They contain the text" in said
    assert "They contain the text" in (tmp_path / "whole" / "README.md").read_text()
    vocabulary = RunFolder(pooled).vocabulary
    ours, theirs = read_members(pooled, vocabulary), read_members(tmp_path / "whole", vocabulary)
    assert ours.record == theirs.record
    assert cli("check", tmp_path / "whole")[0] == 0
    assert langevin.load(tmp_path / "whole")
    assert cli(*command[:2], tmp_path / "whole", "--no-evaluate", "--overwrite")[0] == 0
    assert not has_members(tmp_path / "whole")


def test_an_export_whose_counts_are_gone_is_refused(cli, pooled, tmp_path):
    out = tmp_path / "whole"
    assert cli("export", pooled, out, "--no-evaluate", "--with-counts")[0] == 0
    (out / "members" / "members.json").unlink()
    with pytest.raises(LangevinError, match=r"expected counts in .* export it anew"):
        langevin.load(out)


def test_a_run_without_counts_has_none_to_take_along(cli, finished_run, tmp_path):
    code, _, said = cli("export", finished_run, tmp_path / "out", "--with-counts")
    assert code == 2
    assert "add them by 'langevin pool" in said
    assert not (tmp_path / "out").exists()
