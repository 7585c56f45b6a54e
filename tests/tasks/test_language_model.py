import math

import pytest
import torch

from langevin.errors import LangevinError
from langevin.tasks import open_task


def test_perplexity_of_three_tokens_by_hand(tiny):
    task = open_task(tiny())
    log_p = torch.log(torch.tensor([0.5, 0.25, 0.125]))
    numbers = task.scores(log_p, "test").present()
    assert math.isclose(numbers["nll"], 2 * math.log(2), rel_tol=1e-6)  # (1 + 2 + 3)/3 bits
    assert math.isclose(numbers["perplexity"], 4.0, rel_tol=1e-6)
    assert numbers["items"] == 3


def test_num_data_counts_tokens_and_random_covers_the_same_text(tiny):
    successive, random = open_task(tiny()), open_task(tiny("batching=random"))
    sizes = [successive.training.batch(0, i)[1].numel() for i in range(len(successive.training))]
    assert successive.num_data == random.num_data == sum(sizes)
    assert sizes[-1] < sizes[0]  # a ragged last batch is counted as it is


def test_every_token_of_an_epoch_counts_the_same(tiny):
    """The mean of the losses of an epoch is the mean over its tokens, though the last window is
    shorter."""
    task = open_task(tiny())
    model = task.build_model()
    losses, carry = [], None
    for index in range(task.batches_per_epoch):
        loss, carry = task.loss(model, 0, index, carry)
        losses.append(loss.item())
    streams = task.training.streams.long()
    logits, _ = model(streams[:, :-1])
    whole = torch.nn.functional.cross_entropy(logits.flatten(0, 1), streams[:, 1:].flatten())
    assert sum(losses) / len(losses) == pytest.approx(whole.item(), rel=1e-5)


def test_carried_evaluation_equals_one_pass_and_scores_every_token(tiny):
    task = open_task(tiny())
    model = task.build_model().eval()
    streams = task.evaluated["valid"].streams.long()
    tail = task.evaluated["valid"].tail
    assert len(tail)  # the split does not fill its rows
    whole = torch.cat([streams[-1], tail])
    expected = [
        torch.log_softmax(model(row[None, :-1])[0], -1)[0].gather(-1, row[1:, None]).flatten()
        for row in [*streams[:-1], whole]
    ]
    torch.testing.assert_close(task.log_probs(model, "valid"), torch.cat(expected), rtol=1e-5, atol=1e-5)


def test_random_models_are_evaluated_from_zero_state_in_each_window(tiny):
    task = open_task(tiny("batching=random"))
    model = task.build_model()
    streams = task.evaluated["valid"].streams.long()
    logits, _ = model.eval()(streams[:, 10:20])
    expected = torch.log_softmax(logits, -1).gather(-1, streams[:, 11:21, None])[..., 0]
    scored = task.log_probs(model, "valid")[: streams.shape[0] * (streams.shape[1] - 1)].view(streams.shape[0], -1)
    torch.testing.assert_close(scored[:, 10:20], expected, rtol=1e-5, atol=1e-5)


def test_another_text_is_scored_in_the_model_s_vocabulary(tiny, tmp_path):
    task = open_task(tiny())
    other = tmp_path / "other.txt"

    def add(text):
        other.write_text(text)
        return task.add_file(other)

    assert add("the snow lay deep") == "text"
    assert len(task.log_probs(task.build_model(), "text")) == 16
    assert add("Zèbre") == "text"  # bytes that the training text does not have
    assert len(task.log_probs(task.build_model(), "text")) == 5
    with pytest.raises(LangevinError, match="at least 2 tokens"):
        add("t")


def test_too_short_text_is_refused(tiny, tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("A few words.")
    with pytest.raises(LangevinError, match="too short"):
        open_task(tiny(f"corpus={path}"))


@pytest.mark.parametrize("level", ["byte", "char", "word"])
def test_every_level_trains(tiny, level, tmp_path):
    task = open_task(tiny(f"level={level}"))
    loss, _ = task.loss(task.build_model(), 0, 0, None)
    assert abs(loss.item() - math.log(len(task.vocabulary))) < 0.7
