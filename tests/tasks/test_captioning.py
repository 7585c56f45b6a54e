import json
import logging
import math

import numpy as np
import pytest
import torch

from langevin.data.captions import with_marks
from langevin.errors import LangevinError
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.tasks import open_task
from langevin.errors import Interrupted
from langevin.training.loop import Trainer
from langevin.training.session import resume, start
from tests.tiny_captions import tiny_recipe


def test_num_data_counts_words_and_ends(tmp_path):
    task = open_task(tiny_recipe(tmp_path))
    assert task.num_data == 27 * (4 + 10 + 3)
    assert task.batches_per_epoch == math.ceil(27 * 3 / 8)
    assert task.facts["num_data"] == task.num_data


def test_an_epoch_of_losses_is_the_mean_over_all_words(tmp_path):
    """Losses and gradients of the batches of an epoch average to those of the whole training
    split."""
    task = open_task(tiny_recipe(tmp_path))
    model = task.build_model()
    losses = torch.stack([task.loss(model, 2, index, None)[0] for index in range(task.batches_per_epoch)])
    whole = -task.log_probs(model, "train").mean()
    torch.testing.assert_close(losses.mean(), whole, rtol=1e-5, atol=1e-6)
    assert losses.std() > 0.1  # batches of long captions weigh more
    losses.mean().backward()
    got = model.image.weight.grad.clone()
    model.zero_grad()
    model.train()
    batch = task.evaluated["train"].take(torch.arange(len(task.evaluated["train"])))
    task.word_nll(model, batch).mean().backward()
    torch.testing.assert_close(got, model.image.weight.grad, rtol=1e-4, atol=1e-7)


def test_log_probs_are_each_caption_s_words_in_order(tmp_path):
    task = open_task(tiny_recipe(tmp_path))
    model = task.build_model().eval()
    expected = []
    for name in task.images["valid"]:
        for text in task.captions.texts[name]:
            tokens = task.vocabulary.encode_tokens(with_marks(text))
            row = torch.tensor([task.features.rows[name]])
            log_p = torch.log_softmax(model(task.features.take(row), tokens[None, :-1])[0], -1)
            expected.append(log_p.gather(1, tokens[1:, None])[:, 0])
    torch.testing.assert_close(task.log_probs(model, "valid"), torch.cat(expected), rtol=1e-5, atol=1e-5)


def test_perplexity_of_three_words_by_hand(tmp_path):
    numbers = open_task(tiny_recipe(tmp_path)).scores(torch.log(torch.tensor([0.5, 0.25, 0.125])), "test").present()
    assert math.isclose(numbers["perplexity"], 4.0, rel_tol=1e-6)
    assert numbers["items"] == 3


@pytest.mark.parametrize("name", ["rmsprop", "rmsprop-dropout", "rmsprop-gal", "psgld", "psgld-dropout"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_every_method_trains(tmp_path, name, precision):
    recipe = tiny_recipe(tmp_path, f"precision={precision}", "epochs=2", name=f"flickr8k-{name}")
    trainer = start(recipe, tmp_path / "run")
    trainer.run()
    assert len(trainer.store) == 2
    assert math.isfinite(trainer.history[-1].average["nll"])


def test_the_image_is_learnt(tmp_path):
    """After some epochs the animal and the act, which only the features tell, are known."""
    trainer = start(tiny_recipe(tmp_path, "epochs=20", "burn_in=15", "sample_every=1"), tmp_path / "run")
    trainer.run()
    task = trainer.task
    # 0.37 is the choice among three wordings and no more
    assert trainer.history[-1].average["nll"] < 0.4
    swapped = open_task(tiny_recipe(tmp_path))
    swapped.features.values.copy_(swapped.features.values.flip(1))
    assert swapped.log_probs(trainer.model, "valid").mean() < task.log_probs(trainer.model, "valid").mean() - 0.5


def test_a_resumed_run_ends_with_the_same_bits(tmp_path):
    recipe = tiny_recipe(tmp_path, "dropout=0.5", name="flickr8k-psgld-dropout")
    whole = start(recipe, tmp_path / "whole")
    whole.run()
    cut = start(recipe, tmp_path / "cut")
    with pytest.raises(Interrupted):
        cut.run(stop=lambda: cut.step >= 15)
    again = resume(tmp_path / "cut")
    assert again.step == 15
    again.run()
    for one, two in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(one, two)
    assert whole.history[-1].average == again.history[-1].average


def test_a_run_is_refused_when_its_features_changed(tmp_path):
    start(tiny_recipe(tmp_path), tmp_path / "run")
    rows = np.load(tmp_path / "features.npy")
    rows[0, 0] += 1
    np.save(tmp_path / "features.npy", rows)
    with pytest.raises(LangevinError, match="changed since this run began"):
        resume(tmp_path / "run")


def test_another_caption_file_is_a_split(tmp_path):
    task = open_task(tiny_recipe(tmp_path))
    other = tmp_path / "other.txt"
    other.write_text("test0.jpg#0\tA dog .\ntest1.jpg#0\tThe cat unheard-of\n")
    assert task.add_file(other) == "file"
    assert len(task.log_probs(task.build_model(), "file")) == 3 + 4
    other.write_text("test0.jpg#0\tA dog .\nunseen.jpg#0\tA cat\n")
    with pytest.raises(LangevinError, match=r"1 of 2 images .* have no features .*'unseen.jpg'"):
        task.add_file(other)


def test_a_caption_file_without_words_is_refused(tmp_path, cli):
    recipe, other = tiny_recipe(tmp_path), tmp_path / "other.txt"
    start(recipe, tmp_path / "run").run()
    other.write_text("test0.jpg#0\t.\ntest0.jpg#1\t\ntest1.jpg#0\t- _ !\n")
    code, _, told = cli("evaluate", tmp_path / "run", "--text", other)
    assert code == 2
    assert "expected captions with words in" in told
    assert "other.txt, got none in the captions of 2 images" in told
    other = tmp_path / "other.json"
    other.write_text('{"images": []}')
    with pytest.raises(LangevinError, match="got none in the captions of 0 images"):
        open_task(recipe).add_file(other)


def test_images_left_out_are_told_once(tmp_path, caplog):
    recipe = tiny_recipe(tmp_path, "allow_missing=true")
    with caplog.at_level(logging.INFO, "langevin"):
        open_task(recipe)
        assert "left out" not in caplog.text
        np.save(tmp_path / "features.npy", np.load(tmp_path / "features.npy")[1:-1])
        names = (tmp_path / "features_names.txt").read_text().split()[1:-1]
        (tmp_path / "features_names.txt").write_text("\n".join(names))
        start(recipe, tmp_path / "run").save()
        resume(tmp_path / "run")
    told = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert told == [f"2 of 45 images have no features in {tmp_path / 'features.npy'} and are left out (allow_missing)"]


def test_a_captioner_reads_forward_only(tmp_path):
    with pytest.raises(LangevinError, match="reads forward only"):
        open_task(tiny_recipe(tmp_path, "bidirectional=true"))


def test_the_generic_commands_work(tmp_path, cli, paper):
    (tmp_path / "recipe.toml").write_text(tiny_recipe(tmp_path).to_toml())
    run = tmp_path / "run"
    assert cli("train", tmp_path / "recipe.toml", "--out", run, "--quiet")[0] == 0
    code, printed, _ = cli("evaluate", run, "--json")
    numbers = json.loads(printed)
    assert (code, numbers["samples"], numbers["averaged"]["items"]) == (0, 4, 9 * 17)
    assert paper("record", run, "--out", tmp_path / "numbers.json")[0] == 0
    assert cli("show", run)[0] == 0
    code, _, told = cli("evaluate", run, "--split", "dev")
    assert code == 2
    assert "split must be one of train, valid, test" in told


def test_missing_features_end_with_exit_code_two(tmp_path, cli):
    recipe = tiny_recipe(tmp_path)
    (tmp_path / "recipe.toml").write_text(recipe.to_toml())
    rows, names = np.load(tmp_path / "features.npy"), (tmp_path / "features_names.txt").read_text().split()
    np.save(tmp_path / "features.npy", rows[:-1])
    code, _, told = cli("train", tmp_path / "recipe.toml", "--out", tmp_path / "run")
    assert code == 2
    assert "44 rows but 45 names" in told
    (tmp_path / "features_names.txt").write_text("\n".join(names[:-1]))
    code, _, told = cli("train", tmp_path / "recipe.toml", "--out", tmp_path / "run")
    assert code == 2
    assert "1 of 9 images of the test split have no features" in told
    task = open_task(load_recipe(tmp_path / "recipe.toml", ["allow_missing=true"]))
    assert (len(task.images["test"]), task.facts["left_out"]) == (8, 1)
    assert not (tmp_path / "run").exists()


@pytest.mark.data
@pytest.mark.parametrize("name", ["flickr8k-rmsprop-gal", "flickr8k-psgld"])
def test_flickr8k_learns_in_a_few_steps(name, real_data, tmp_path):
    short = ["epochs=0.05", "burn_in=0.02", "sample_every=0.02", "threads=1", "precision=bfloat16"]
    task = open_task(load_recipe(name, short))
    assert (task.num_data, task.batches_per_epoch) == (353_639, 469)
    for split in ("valid", "test"):
        task.evaluated[split] = task.caption_set(task.images[split][:20], task.captions)
    trainer = Trainer(RunFolder.create(tmp_path / "run", task.recipe, task.vocabulary, task.facts), task)
    trainer.run()
    assert trainer.history[-1].valid["nll"] < math.log(len(task.vocabulary)) - 1
