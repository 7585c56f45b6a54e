import json

import numpy as np
import pytest
import torch

from langevin.errors import LangevinError
from langevin.models.extractor import open_extractor
from tests.tiny_pictures import write_network, write_pictures

pytest.importorskip("PIL")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return write_network(tmp_path_factory.mktemp("networks") / "network")


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    write_pictures(folder, 1)
    return folder / "00.png"


def test_features_are_the_global_average_pool(network, picture):
    """As transformers itself gives it, of a file, its bytes and its pixels."""
    from io import BytesIO

    from PIL import Image

    extractor = open_extractor(str(network))
    pixels = Image.open(picture)
    ready = transformers.AutoImageProcessor.from_pretrained(network)(pixels, return_tensors="pt")
    model = transformers.AutoModel.from_pretrained(network).eval()
    with torch.no_grad():
        expected = model(**ready).pooler_output.flatten(1)
    for seen in (picture, BytesIO(picture.read_bytes()), np.asarray(pixels)):
        torch.testing.assert_close(extractor.features([seen]), expected)
    assert extractor.width == 16


def test_a_vision_transformer_is_read_by_the_mean_of_its_places(tmp_path, picture):
    config = transformers.ViTConfig(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        image_size=32, patch_size=16,
    )  # fmt: skip
    transformers.ViTModel(config).save_pretrained(tmp_path)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    extractor = open_extractor(str(tmp_path))
    assert extractor.width == 12
    one, two = extractor.features([picture, picture])
    torch.testing.assert_close(one, two)


def test_its_facts_tell_it_from_others(network, tmp_path):
    known = open_extractor(str(network)).facts()
    assert open_extractor(str(network), known=known).facts() == known
    with pytest.raises(LangevinError, match=r"expected the extractor network of this run \(sha256"):
        open_extractor(str(write_network(tmp_path / "other", seed=1)), known=known)
    settings = write_network(tmp_path / "same") / "preprocessor_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"image_mean": [0, 0, 0]}))
    with pytest.raises(LangevinError, match=r"of this run \(preprocess preprocessor_config"):
        open_extractor(str(tmp_path / "same"), known=known)


def pickle_weights(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def drop_settings(folder):
    (folder / "preprocessor_config.json").unlink()


def drop_config(folder):
    (folder / "config.json").unlink()


def drop_weights(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file(dict(list(weights.items())[:3]), folder / "model.safetensors")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (pickle_weights, r"found pickled weights \(pytorch_model.bin\)"),
        (drop_settings, "expected preprocessor_config.json in"),
        (drop_config, "found no config.json"),
        (drop_weights, "are missing"),
        (lambda folder: (folder / "config.json").write_text("{"), "it says"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"12345678{}"), "it says"),
    ],
)
def test_what_is_no_image_network_is_refused(tmp_path, spoil, message):
    folder = write_network(tmp_path / "network")
    spoil(folder)
    with pytest.raises(LangevinError, match=message) as told:
        open_extractor(str(folder))
    assert "\n" not in str(told.value)


def test_a_name_that_is_not_there_says_how_to_get_it():
    with pytest.raises(LangevinError, match=r"get it with 'hf download somebody/no-such-network'"):
        open_extractor("somebody/no-such-network")


def test_a_text_model_is_refused(tmp_path):
    config = transformers.BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    write_network(tmp_path / "other")
    (tmp_path / "other" / "preprocessor_config.json").rename(tmp_path / "preprocessor_config.json")
    with pytest.raises(LangevinError, match=r"expected an image network in .*, got bert"):
        open_extractor(str(tmp_path))


def test_only_resnet_weights_are_told_how_they_want_pictures(network):
    with pytest.raises(LangevinError, match="says itself how it wants pictures"):
        open_extractor(str(network), "torchvision")
