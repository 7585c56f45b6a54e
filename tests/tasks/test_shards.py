"""The losses, gradients, states and scores of the pieces of a batch or split are together those of
the whole."""

import pytest
import torch

from langevin.data.buckets import Buckets
from langevin.recipe import load_recipe
from langevin.tasks import open_task
from langevin.tasks.shards import WHOLE, Shard
from tests.sentences import TINY_CLASSIFIER, write_questions
from tests.tiny_captions import tiny_recipe

DROPOUT = {
    "naive": ["layers=2", "dropout=0.4"],
    "gal": ["layers=2", "dropout=0.4", "dropout_kind=gal"],
    "gaussian": ["layers=2", "dropout=0.4", "dropout_kind=gaussian"],
}
JOBS = ["successive", "random", "classify", "weighted", "caption"]


@pytest.fixture(params=[(job, kind) for job in JOBS for kind in DROPOUT], ids="-".join)
def task(request, tiny, tmp_path):
    job, kind = request.param
    if job in ("successive", "random"):
        return open_task(tiny(f"batching={job}", "batch_size=5", *DROPOUT[kind]))
    if job == "caption":
        return open_task(tiny_recipe(tmp_path, *DROPOUT[kind]))
    file = write_questions(tmp_path / "questions.txt")
    weighted = ["class_weight=balanced"] * (job == "weighted")
    given = [f"corpus={file}", *TINY_CLASSIFIER, *DROPOUT[kind], *weighted]
    return open_task(load_recipe("trec-psgld", given))


def step(task, model, shard, carry=None):
    """Loss and state of the second batch, masks as at some step; the gradient is added up."""
    torch.manual_seed(11)
    model.train()
    loss, after = task.loss(model, 0, 1, carry, shard)
    loss.backward()
    return loss.item(), after


@pytest.mark.parametrize("count", [2, 3])
def test_pieces_of_a_batch_sum_to_the_whole(task, count):
    """With its dropout masks: each kind of them would differ in every row if pieces drew their
    own."""
    model = task.build_model()
    whole, state = step(task, model, WHOLE)
    expected = [p.grad.clone() for p in model.parameters() if p.requires_grad]
    model.zero_grad()
    pieces = [step(task, model, Shard(number, count)) for number in range(count)]
    assert sum(loss for loss, _ in pieces) == pytest.approx(whole, rel=1e-5)
    for parameter, gradient in zip((p for p in model.parameters() if p.requires_grad), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)
    if task.carries:
        joined = torch.cat([after[0][0] for _, after in pieces], 1)
        torch.testing.assert_close(joined, state[0][0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [2, 7, 40])
def test_pieces_of_validation_are_the_whole(task, count):
    """Also where there are more pieces than items, and the last items of a text follow the last
    stream."""
    model = task.build_model()
    pieces = [task.log_probs(model, "valid", shard=Shard(number, count)) for number in range(count)]
    torch.testing.assert_close(torch.cat(pieces), task.log_probs(model, "valid"), rtol=1e-5, atol=1e-6)


def test_masks_of_rows_that_lie_otherwise_in_memory():
    """What torch's recurrent kernels return lies step by step, and normals are drawn in the order
    of memory."""
    from langevin.models.dropout import Dropout

    x = torch.ones(7, 5, 6).transpose(0, 1)  # 5 rows
    noise = Dropout(0.5, "gaussian")
    torch.manual_seed(1)
    whole = noise(x)
    shard = Shard(1, 2)
    with shard.cut((x,)) as (own,):
        torch.manual_seed(1)
        assert noise(own).equal(whole[2:])


def test_shards_nest_and_cover():
    for rows in (4, 7, 50):
        for size, pieces in ((2, 3), (3, 2), (4, 1)):
            spans = [own.span(rows) for n in range(size) for own in Shard(n, size).divided(pieces)]
            assert [row for span in spans for row in range(rows)[span]] == list(range(rows))
            assert spans[pieces].start == Shard(1, size).span(rows).start


def test_no_batch_has_fewer_rows_than_told(task):
    found = [len(task.training_batch(1, index)[0]) for index in range(task.batches_per_epoch)]
    assert min(found) == task.fewest_rows


def test_fewest_items_of_buckets():
    buckets = Buckets(torch.arange(1, 24), 5, seed=0)
    assert min(len(buckets.batch(0, index)) for index in range(len(buckets))) == buckets.fewest == 4
