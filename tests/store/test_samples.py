import json
import shutil
import subprocess
import sys

import numpy
import pytest
import torch
from torch import nn

from langevin import LangevinError, SampleStore
from langevin.store.samples import choose
from langevin.store.weights import DamagedSample


def fill(folder, n=4):
    model, store = nn.Linear(3, 2), SampleStore(folder)
    kept = []
    for step in range(1, n + 1):
        nn.init.normal_(model.weight)
        store.append(model, step * 10)
        kept.append(model.weight.detach().clone())
    return model, store, kept


def lines_of(folder):
    """The list of samples, without the checksums of its lines."""
    lines = map(json.loads, (folder / "manifest.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if key != "crc"} for line in lines]


def put_lines(folder, lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "manifest.jsonl").write_text(text)


def test_reload_equals_memory(tmp_path):
    model, _, kept = fill(tmp_path / "s")
    for sample, weight in zip(SampleStore(tmp_path / "s").read(), kept, strict=True):
        sample.load_into(model)
        assert torch.equal(model.weight, weight)


def test_discard_and_thin_are_the_reader_s_choice(tmp_path):
    _, store, _ = fill(tmp_path, 6)
    assert [s.step for s in store.read(discard=1, thin=2)] == [20, 40, 60]
    assert len(SampleStore(tmp_path)) == 6


def test_collections_are_the_paper_s():
    samples = list(range(1, 13))
    assert choose(samples, "forward", 4) == [1, 2, 3, 4]
    assert choose(samples, "backward", 4) == [9, 10, 11, 12]
    assert choose(samples, "thinned", 4) == [3, 6, 9, 12]  # interval K/S = 3
    assert choose(samples, "thinned", 5) == [2, 4, 7, 9, 12]
    for how in ("forward", "backward", "thinned"):
        assert choose(samples, how) == samples
    for bad in (("sideways", 2), ("forward", 0), ("forward", 13)):
        with pytest.raises(LangevinError):
            choose(samples, *bad)


def test_steps_must_increase(tmp_path):
    model, store, _ = fill(tmp_path)
    with pytest.raises(LangevinError, match="above 40"):
        store.append(model, 40)


def test_numbers_of_torch_and_numpy_are_listed_and_what_cannot_be_leaves_nothing(tmp_path):
    store = SampleStore(tmp_path)
    store.append(nn.Linear(2, 2), numpy.int64(10), loss=torch.tensor(0.5), best=numpy.float32(2.0))
    (sample,) = SampleStore(tmp_path).read()
    assert (sample.step, sample.about) == (10, {"loss": 0.5, "best": 2.0})
    before = sorted(tmp_path.iterdir())
    for about in ({"net": nn.Linear(2, 2)}, {"loss": torch.ones(2)}):
        with pytest.raises(LangevinError, match="expected numbers or words about a sample"):
            store.append(nn.Linear(2, 2), 20, **about)
    with pytest.raises(TypeError):
        store.append(nn.Linear(2, 2), 20.5)
    assert sorted(tmp_path.iterdir()) == before


def test_empty_store_says_so(tmp_path):
    with pytest.raises(LangevinError, match="no samples"):
        SampleStore(tmp_path).read()
    _model, store, _ = fill(tmp_path, 2)
    with pytest.raises(LangevinError, match="leaves none"):
        store.read(discard=2)


def damage(kind, path):
    content = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(content[:-5])
    elif kind == "foreign":
        path.write_bytes(b"GIF89a")
    elif kind == "tampered":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        path.unlink()


@pytest.mark.parametrize("kind", ["truncated", "foreign", "tampered", "missing"])
def test_damaged_sample_is_named_and_the_others_stay_usable(tmp_path, kind):
    _model, store, _ = fill(tmp_path)
    bad = store.read()[1]
    damage(kind, bad.path)
    with pytest.raises(DamagedSample, match=bad.path.name):
        SampleStore(tmp_path).read()[1].load()
    rest = SampleStore(tmp_path, skip_damaged=True)
    assert [s.step for s in rest.read()] == [10, 30, 40]
    assert len(rest.skipped) == 1
    assert bad.path.name in rest.skipped[0]


def test_sample_of_another_model_is_refused(tmp_path):
    _, store, _ = fill(tmp_path)
    with pytest.raises(LangevinError, match=r"weight is \(2, 3\) there, \(2, 4\) in the model"):
        store.read()[0].load_into(nn.Linear(4, 2))


def test_broken_manifest_is_refused(tmp_path):
    fill(tmp_path)
    (tmp_path / "manifest.jsonl").write_text("{\n")
    with pytest.raises(LangevinError, match="manifest"):
        SampleStore(tmp_path)


def test_chains_that_the_manifest_names_are_told_apart_again(tmp_path):
    fill(tmp_path)
    lines = lines_of(tmp_path)
    for line, chain in zip(lines[1:], (2, 2, 5, 5), strict=True):
        line["about"]["chain"] = chain
    put_lines(tmp_path, lines)
    store = SampleStore(tmp_path)
    assert [(s.chain, s.step) for s in store.samples] == [(0, 10), (0, 20), (1, 30), (1, 40)]
    assert [s.step for s in store.select("backward", 1)] == [20, 40]
    store.samples[3].path.unlink()
    rest = SampleStore(tmp_path, skip_damaged=True)
    assert (rest.chains, [s.chain for s in rest.read()]) == (2, [0, 0, 1])


def test_tied_weights_are_stored_once_and_come_back_tied(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.output = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
            self.output.weight = self.embedding.weight

    model, store = Tied(), SampleStore(tmp_path)
    sample = store.append(model, 1)
    assert list(sample.load()) == ["embedding.weight"]
    other = Tied()
    sample.load_into(other)
    assert torch.equal(other.output.weight, model.embedding.weight)
    assert other.output.weight is other.embedding.weight


def test_a_failed_write_keeps_what_was_there(tmp_path, monkeypatch):
    model, store, _ = fill(tmp_path / "s")
    before = sorted(p.name for p in (tmp_path / "s").iterdir())

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("langevin.files.os.fsync", full)
    with pytest.raises(LangevinError, match="No space left"):
        store.append(model, 100)
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == before
    assert len(SampleStore(tmp_path / "s")) == 4


def test_store_can_be_moved(tmp_path):
    _, _, kept = fill(tmp_path / "a")
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert torch.equal(SampleStore(tmp_path / "b").read()[0].load()["weight"], kept[0])


def test_no_pickle_and_plain_json(tmp_path):
    fill(tmp_path)
    assert [line["step"] for line in lines_of(tmp_path)[1:]] == [10, 20, 30, 40]
    assert {p.suffix for p in tmp_path.iterdir()} == {".jsonl", ".safetensors"}


MEMORY = """
import resource, sys
import torch
from torch import nn
from langevin.store.samples import SampleStore
model = nn.Linear(2000, 2000)
store = SampleStore(sys.argv[1])
for step in range(int(sys.argv[2])):
    store.append(model, step + 1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for sample in store.read():
    sample.load_into(model)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_of_reading_does_not_grow_with_the_number_of_samples(tmp_path):
    """16 MB a sample: forty of them must not need more than one sample over what writing them
    needed."""
    command = [sys.executable, "-c", MEMORY, str(tmp_path), "40"]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown < 20_000


@pytest.mark.parametrize("name", ["../precious.safetensors", "../../000000001.safetensors", "notes.txt", "", 7, None])
def test_a_manifest_that_names_other_files_is_refused_and_they_stay(tmp_path, name):
    fill(tmp_path / "s")
    precious = tmp_path / "precious.safetensors"
    precious.write_text("years of work")
    lines = lines_of(tmp_path / "s")
    lines[4]["file"] = name
    put_lines(tmp_path / "s", lines)
    with pytest.raises(LangevinError, match=r"manifest\.jsonl.*, got"):
        SampleStore(tmp_path / "s").forget_after(0)
    assert precious.read_text() == "years of work"


def test_a_sample_that_is_a_link_out_of_its_folder_is_refused(tmp_path):
    _, store, _ = fill(tmp_path / "s")
    path = store.samples[1].path
    path.rename(tmp_path / "elsewhere.safetensors")
    path.symlink_to(tmp_path / "elsewhere.safetensors")
    with pytest.raises(LangevinError, match="leads out of it"):
        SampleStore(tmp_path / "s")


def test_two_stores_of_one_folder_in_one_process(tmp_path):
    model, _, _ = fill(tmp_path)
    store = SampleStore(tmp_path)
    store.append(model, 50)
    assert [sample.step for sample in SampleStore(tmp_path).read()] == [10, 20, 30, 40, 50]
