"""Counts join the samples of a finished text run: weighed first, then with validation counted
in."""

import json
import random
import shutil

import pytest
import torch

import langevin
from langevin.cli.outcome import join_members
from langevin.errors import LangevinError
from langevin.posterior.mixture import fit_weights, log_mixture
from langevin.posterior.switching import SHARES, follow
from langevin.process import SILENT
from langevin.store import members as stored
from langevin.store.check import check_folder
from langevin.store.folder import RunFolder
from langevin.store.members import read_members, read_members_record
from langevin.tasks.counting import counted_log_probs, learn_counts
from langevin.tasks.language_model import LanguageModelTask
from langevin.training.chains import start_chains
from langevin.training.jobs import PARENT
from langevin.training.members import add_members, average_on_validation, wants_members
from langevin.training.session import resume, start
from tests.conftest import SET

WORDS = ["the", "snow", "lay", "deep", "on", "road", "to", "town", "and", "a", "clear", "night"]


@pytest.fixture(scope="module")
def long_text(tmp_path_factory):
    """Enough of it to weigh members by."""
    drawn, path = random.Random(3), tmp_path_factory.mktemp("text") / "long.txt"
    path.write_text(" ".join(drawn.choice(WORDS) for _ in range(3000)))
    return path


@pytest.fixture
def run(tiny, tmp_path, long_text):
    def build(*overrides):
        trainer = start(tiny(f"corpus={long_text}", *overrides), tmp_path / "run")
        trainer.run()
        return trainer.folder

    return build


def files_of(folder):
    return {path.name: path.read_bytes() for path in sorted((folder.path / "members").iterdir())}


def test_members_are_weighed_before_validation_is_counted(run):
    folder = run()
    record = add_members(folder)
    task = LanguageModelTask(folder.recipe, folder.vocabulary, folder.facts)
    clean = learn_counts(task, record.asked_order, 2**28)
    text = torch.cat([task.evaluated["valid"].sequence, task.evaluated["valid"].tail])
    fifths = torch.tensor_split(text, 5)
    pieces = []
    for held_out in range(5):
        rest = learn_counts(task, record.asked_order, 2**28)
        for number in {0, 1, 2, 3, 4} - {held_out}:
            rest.add(fifths[number])
        pieces.append(rest.log_probs(fifths[held_out]))
    network = average_on_validation(folder, task, SILENT).double()
    counted = torch.cat(pieces)[1:]
    assert record.nll["counts"] == pytest.approx(-counted.mean().item(), abs=1e-9)
    assert record.nll["network"] == pytest.approx(-network.mean().item(), abs=1e-6)

    def nll(share):
        return -(share * network.exp() + (1 - share) * counted.exp()).log().mean().item()

    best = min((number / 1000 for number in range(1001)), key=nll)
    assert record.weighed
    assert record.weights["network"] == pytest.approx(best, abs=2e-3)
    assert record.nll["pool"] == pytest.approx(nll(best), abs=1e-4)
    kept = read_members(folder.path, folder.vocabulary).counts
    assert -counted_log_probs(kept, task, "valid").mean() < record.nll["counts"]
    clean.add(text)
    assert all(torch.equal(tensor, clean.to_tensors()[name])
               for name, tensor in kept.to_tensors().items())


def test_reading_on_is_weighed_on_validation_read_so(run):
    folder = run()
    record = add_members(folder)
    task = LanguageModelTask(folder.recipe, folder.vocabulary, folder.facts)
    clean = learn_counts(task, record.asked_order, 2**28)
    each = torch.stack([average_on_validation(folder, task, SILENT).double(),
                        counted_log_probs(clean, task, "valid", adapt=True),
                        counted_log_probs(clean.blank(), task, "valid", adapt=True)])
    weights = record.reading_on.weights
    expected = dict(zip(("network", "counts", "counts of this text"), fit_weights(each).tolist(),
                        strict=True))
    assert weights == pytest.approx(expected, abs=1e-6)
    prior = torch.tensor(list(weights.values())).double()
    told = {share: -log_mixture(each, follow(each, prior, share=share)[0]).sum()
            for share in SHARES}
    assert record.reading_on.share == min(told, key=told.get)
    pool = langevin.load(folder.path).pool(adapt=True)
    assert pool.names == list(weights)
    assert pool.share == record.reading_on.share
    assert langevin.load(folder.path).labels(adapt=True)[-1] == "counts of this text"


def test_surprise_is_that_of_windows(run):
    folder = run("parts=[40,40,20]")
    record = add_members(folder)
    assert len(record.surprise) == 101
    assert sorted(record.surprise) == list(record.surprise)
    assert record.surprise[0] < record.nll["pool"] < record.surprise[-1]
    task = LanguageModelTask(folder.recipe, folder.vocabulary, folder.facts)
    before = learn_counts(task, record.asked_order, 2**28)
    both = torch.stack([average_on_validation(folder, task, SILENT).double(),
                        counted_log_probs(before, task, "valid")])
    weights = torch.tensor([record.weights["network"], record.weights["counts"]])
    nll = -log_mixture(both, weights)[: len(both[0]) // 200 * 200].view(-1, 200).mean(1)
    assert record.surprise[50] == pytest.approx(nll.median().item(), abs=0.02)


def test_killed_between_its_files_begins_again(run, monkeypatch):
    folder = run()
    add_members(folder)
    whole = files_of(folder)
    shutil.rmtree(folder.path / "members")

    class Killed(BaseException):
        """Like SIGKILL."""

    def die(path, record):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(stored, "write_record", die)
        with pytest.raises(Killed):
            add_members(folder)
    left = folder.path / "members" / ".members.json.0123abcd.tmp"
    left.write_bytes(b"{")
    assert read_members_record(folder.path) is None
    assert all(finding.sound for finding in check_folder(folder.path))
    add_members(folder)
    assert files_of(folder) == whole
    add_members(folder, anew=True)
    assert files_of(folder) == whole


def test_members_that_fit_stay_and_others_are_made_again(run, caplog):
    folder = run()
    add_members(folder)
    path = folder.path / "members" / "counts.safetensors"
    status = path.stat()
    add_members(folder)
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    found = {finding.file: finding for finding in check_folder(folder.path)}
    assert not found["members"].sound
    assert "its checksum differs" in found["members"].said
    with pytest.raises(LangevinError, match="make it again by 'langevin pool"):
        read_members(folder.path, folder.vocabulary)
    add_members(folder)
    assert "made again" in caplog.text
    assert all(finding.sound for finding in check_folder(folder.path))


def test_validation_too_small_gives_equal_weights(tiny, tmp_path):
    trainer = start(tiny(), tmp_path / "run")
    trainer.run()
    record = add_members(trainer.folder)
    assert not record.weighed
    assert set(record.weights.values()) == {0.5}
    assert record.reading_on is None
    assert langevin.load(trainer.folder.path).pool(adapt=True).names == ["network", "counts"]
    assert 0 < record.tokens < 500


def test_the_order_falls_first_where_memory_is_short(run):
    folder = run("counts_megabytes=1", "level=char")
    record = add_members(folder)
    assert record.bytes <= 2**20 * 1.1
    assert record.order <= record.asked_order


def test_an_unfinished_run_gets_none(tiny, tmp_path):
    trainer = start(tiny(), tmp_path / "run")
    trainer.save()
    with pytest.raises(LangevinError, match=r"expected a finished run in .*langevin resume"):
        add_members(trainer.folder)


def test_only_texts_have_counts(classifier_run):
    with pytest.raises(LangevinError, match="counts foresee texts alone"):
        add_members(RunFolder(classifier_run))


def test_members_of_another_vocabulary_are_refused(run, tiny, tmp_path):
    folder = run()
    add_members(folder)
    other = start(tiny("level=char"), tmp_path / "other").folder
    shutil.copytree(folder.path / "members", other.path / "members")
    with pytest.raises(LangevinError, match="got those of another"):
        read_members(other.path, other.vocabulary)
    found = {finding.file: finding.sound for finding in check_folder(other.path)}
    assert not found["members"]


def test_a_record_that_lies_about_its_weights_is_refused(run):
    folder = run()
    add_members(folder)
    path = folder.path / "members" / "members.json"
    record = json.loads(path.read_text())
    del record["sha256"]
    record["weights"] = {"network": 0.5, "counts": 0.6}
    path.write_text(json.dumps(record | {"sha256": stored.seal(record)}))
    with pytest.raises(LangevinError, match="sum to 1"):
        read_members_record(folder.path)


@pytest.mark.parametrize("text", ["a" * 3000, "ab\n" * 70])
def test_a_text_of_one_symbol_and_one_that_is_short(cli, tmp_path, text):
    path, out = tmp_path / "own.txt", tmp_path / "run"
    path.write_text(text)
    code, said, _ = cli("train", "--text", path, "--out", out, "--quiet", *SET)
    assert code == 0
    assert "counts of up to" in said
    assert "pool (network" in said
    assert read_members(out, RunFolder(out).vocabulary) is not None


def test_a_run_without_a_pool(cli, tiny, text_file, tmp_path):
    out = tmp_path / "run"
    code, said, _ = cli("train", "--text", text_file, "--out", out, "--quiet", *SET, "--set",
                        "pool=none")
    assert code == 0
    assert "counts" not in said
    assert not wants_members(RunFolder(out))
    assert not (out / "members").exists()


def test_what_was_cut_off_is_made_on_resuming(cli, text_file, tmp_path):
    out = tmp_path / "run"
    assert cli("train", "--text", text_file, "--out", out, "--quiet", *SET)[0] == 0
    whole = files_of(RunFolder(out))
    shutil.rmtree(out / "members")
    assert cli("resume", out, "--quiet")[0] == 0
    assert files_of(RunFolder(out)) == whole


def test_chains_have_counts_once(tiny, tmp_path, monkeypatch):
    folder = start_chains(tiny(), tmp_path / "chains", 2)
    for chain in folder.chains:
        resume(chain.path).run()
    monkeypatch.setenv(PARENT, "1")
    assert join_members(folder.chains[0], quiet=True) is None, "the parent of all does it"
    monkeypatch.delenv(PARENT)
    assert join_members(folder, quiet=True) == read_members_record(folder.path)
    assert len({name[0] for name in read_members_record(folder.path).samples}) == 2
    assert not list(folder.path.glob("chain-*/members"))


def test_replacing_takes_our_members_and_no_foreign_file(cli, text_file, tmp_path):
    out = tmp_path / "run"
    command = ("train", "--text", text_file, "--out", out, "--quiet", *SET)
    assert cli(*command)[0] == 0
    foreign = out / "members" / "mine.txt"
    foreign.write_text("mine")
    code, _, said = cli(*command, "--overwrite")
    assert code == 2
    assert "mine.txt was not written by langevin" in said
    foreign.unlink()
    assert cli(*command, "--overwrite")[0] == 0
