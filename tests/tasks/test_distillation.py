"""The loss of a student against its definition; a state for every teacher; confidence that follows
the teacher's."""

import copy

import pytest
import torch

from langevin.posterior.average import members_of
from langevin.posterior.swag import weight_average
from langevin.recipe import load_recipe
from langevin.store.folder import RunFolder
from langevin.tasks import open_task
from langevin.tasks.distillation import DistillTask
from langevin.tasks import open_run_task
from tests.sentences import TINY_CLASSIFIER, write_questions
from tests.tiny_captions import tiny_recipe


def teachers(task, count):
    """Members with weights of their own."""
    members = []
    for number in range(count):
        torch.manual_seed(number)
        member = task.build_model().eval().requires_grad_(False)
        for weight in member.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
        members.append(member)
    return members


def distilled(task, members, per_row=1, data_weight=0.0, start=None):
    return DistillTask(task, members, start, per_row=per_row, data_weight=data_weight)


def by_definition(task, student, members, batch, weight):
    """−Σ p̄ log q and −log q(observed), summed over the items of a batch read from zero states."""
    log_q, observed = torch.log_softmax(task.logits(student, batch, None)[0], -1), task.logits(student, batch, None)[1]
    p = sum(torch.softmax(task.logits(m, batch, None)[0], -1) for m in members) / len(members)
    hard = -log_q.gather(1, observed[:, None]).sum()
    return (1 - weight) * -(p * log_q).sum() + weight * hard


@pytest.fixture(params=["language-model", "classify", "caption"])
def task(request, tiny, tmp_path):
    if request.param == "language-model":
        return open_task(tiny())
    if request.param == "caption":
        return open_task(tiny_recipe(tmp_path))
    corpus = write_questions(tmp_path / "questions.csv")
    return open_task(load_recipe("trec-psgld", [f"corpus={corpus}", *TINY_CLASSIFIER]))


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_all_teachers_at_once_give_the_loss_of_the_definition(task, weight):
    members = teachers(task, 3)
    student, whole = task.build_model().eval(), distilled(task, members, per_row=3, data_weight=weight)
    batch = task.training_batch(0, 0)
    loss, _ = whole.loss(student, 0, 0, None)
    expected = by_definition(task, student, members, batch, weight) * task.batches_per_epoch / task.num_data
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_teachers_in_turn_teach_every_row_equally(task):
    """Over as many turns as there are samples, the mean of the targets of every item is p̄."""
    members = teachers(task, 5)
    batch = task.training_batch(0, 0)
    full = distilled(task, members, per_row=5).teach(batch, 0)[0].exp()
    turns = distilled(task, members, per_row=2)
    each = [turns.teach(batch, turn)[0].exp() for turn in range(5)]
    assert not torch.allclose(each[0], full, atol=1e-3)
    torch.testing.assert_close(sum(each) / 5, full, atol=1e-5, rtol=1e-4)


def test_every_teacher_carries_its_own_state(tiny):
    """Two batches with carried states give the targets of one long batch."""
    task = open_task(tiny())
    members = teachers(task, 3)
    taught = distilled(task, members, per_row=2)
    first, second = task.training_batch(0, 0), task.training_batch(0, 1)
    early, states = taught.teach(first, 7)
    late, _ = taught.teach(second, 7, states)
    long, _ = taught.teach(tuple(torch.cat(both, 1) for both in zip(first, second, strict=True)), 7)
    rows, classes = len(first[0]), long.shape[-1]
    joint = torch.cat([early.view(rows, -1, classes), late.view(rows, -1, classes)], 1)
    torch.testing.assert_close(joint.flatten(0, 1), long, atol=1e-5, rtol=1e-4)
    forgot, _ = taught.teach(second, 7)
    assert not torch.allclose(forgot, late, atol=1e-4)


def test_state_of_the_student_comes_first(tiny):
    task = open_task(tiny("layers=2"))
    taught, student = distilled(task, teachers(task, 3), per_row=3), task.build_model().eval()
    _, carry = taught.loss(student, 0, 0, None)
    assert len(carry) == 2 + 3 * 2
    plain = task.loss(student, 0, 0, None)[1]
    for ours, theirs in zip(carry[:2], plain, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("true_scale", [0.8, 1.25])
def test_the_scale_of_the_logits_is_found(finished_run, true_scale):
    """A student that is its teacher but for the scale of its logits gets that scale back, in its
    output layer."""
    run = RunFolder(finished_run)
    task = open_run_task(run)
    member = members_of(task.build_model(), run.store().read()[-1:])[0]
    for weight in member.output.parameters():
        weight.mul_(4)  # far from uniform, so that the scale matters
    student = copy.deepcopy(member)
    for weight in student.output.parameters():
        weight.div_(true_scale)
    taught = distilled(task, [member])
    assert taught.fit_scale(student) == pytest.approx(true_scale, rel=2e-3)
    before = student.output.weight.clone()
    mended = taught.as_sample(student)
    torch.testing.assert_close(mended.output.weight, member.output.weight, rtol=3e-3, atol=1e-6)
    assert torch.equal(student.output.weight, before)  # training goes on from what it was


def test_a_student_of_the_same_shape_starts_in_the_middle(finished_run, tiny):
    run = RunFolder(finished_run)
    middle = weight_average(run.store().read())
    task = open_run_task(run)
    start = distilled(task, members_of(task.build_model(), run.store().read()), start=middle).build_model()
    assert all(torch.equal(tensor, middle[name]) for name, tensor in start.state_dict().items())
    small = open_task(tiny("hidden=5"))
    own = small.build_model().state_dict()
    other = distilled(small, [], start=middle).build_model().state_dict()
    assert all(torch.equal(other[name], own[name]) for name in own)
