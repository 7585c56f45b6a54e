"""A pool is a mixture of readers and a reader itself; weights that follow what is read."""

import pytest
import torch

from langevin.errors import LangevinError
from langevin.models.counts import Counts
from langevin.models.reader import Reader
from langevin.posterior.pool import Member, Pool
from langevin.posterior.switching import SHARE, follow

V = 5


class Fixed:
    """Parts that always foresee the same."""

    def __init__(self, log_p: torch.Tensor) -> None:
        self.log_p = log_p  # [parts, V]
        self.begin(1)

    def begin(self, rows: int, given: torch.Tensor | None = None) -> None:
        self.rows = rows

    @property
    def weights(self) -> torch.Tensor:
        return torch.full((len(self.log_p), self.rows), 1 / len(self.log_p))

    def foresee(self) -> torch.Tensor:
        return self.log_p[:, None].expand(-1, self.rows, -1)

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.log_p[:, tokens]

    def take(self, rows: torch.Tensor) -> None:
        self.rows = len(rows)

    def join(self, other: Reader) -> None:
        self.rows += other.weights.shape[1]


def fixed(parts: int, seed: int, size: int = V) -> Fixed:
    generator = torch.Generator().manual_seed(seed)
    return Fixed(torch.log_softmax(torch.randn(parts, size, generator=generator), -1))


def text(length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, (length,), generator=torch.Generator().manual_seed(seed))


def pool(*, adapt: bool = False) -> Pool:
    counts = Counts.learn(text(300), V, 3, start=[0])
    network = Member("network", fixed(3, 1), 0.6)
    return Pool([network, Member("counts", counts.reader(adapt=adapt), 0.4)], adapt=adapt)


def test_the_parts_are_all_parts_and_share_their_member_s_weight():
    joint = pool()
    joint.begin(2)
    assert joint.sizes == [3, 1]
    assert torch.allclose(joint.weights, torch.tensor([[0.2] * 2] * 3 + [[0.4] * 2]).double())
    assert joint.foresee().shape == (4, 2, V)
    assert joint.read(text(8).view(2, 4)).shape == (4, 2, 4)


@pytest.mark.parametrize("adapt", [False, True])
def test_what_is_read_is_what_was_foreseen(adapt):
    joint, tokens = pool(adapt=adapt), text(40, 1)
    whole = joint.score(tokens[None])[0]
    joint.begin(1)
    for number, token in enumerate(tokens.tolist()):
        foreseen = joint.next().log_probs[0]
        assert abs(foreseen.exp().sum() - 1) < 1e-6
        assert abs(foreseen[token] - whole[number]) < 1e-9
        joint.read(torch.tensor([[token]]))


@pytest.mark.parametrize("size", [1, 7])
def test_a_text_in_chunks_moves_the_weights_as_the_whole(size):
    joint, tokens = pool(adapt=True), text(60, 2)
    whole, after = joint.score(tokens[None]), joint.weights.clone()
    joint.begin(1)
    chunks = torch.cat([joint.score(piece) for piece in tokens[None].split(size, 1)], 1)
    assert torch.allclose(chunks, whole, atol=1e-12)
    assert torch.allclose(joint.weights, after, atol=1e-12)
    assert not torch.allclose(after, joint.prior)


def test_weights_follow_as_the_switching_prior_says():
    log_p = torch.log(torch.tensor([[0.5, 0.9, 0.1], [0.25, 0.1, 0.9]], dtype=torch.float64))
    prior = torch.tensor([0.3, 0.7], dtype=torch.float64)
    trace, after = follow(log_p, prior)
    w = [0.3, 0.7]
    for place, (a, b) in enumerate([(0.5, 0.25), (0.9, 0.1), (0.1, 0.9)]):
        assert trace[:, place].tolist() == pytest.approx(w)
        total = w[0] * a + w[1] * b
        moved = w[0] * a / total, w[1] * b / total
        w = [(1 - SHARE) * m + SHARE * v for m, v in zip(moved, (0.3, 0.7), strict=True)]
    assert after.tolist() == pytest.approx(w)


def test_a_part_that_was_wrong_for_long_comes_back():
    right, wrong = torch.full((2000,), -0.1), torch.full((2000,), -9.0)
    log_p = torch.stack([torch.cat([right, wrong]), torch.cat([wrong, right])]).double()
    trace, after = follow(log_p, torch.tensor([0.5, 0.5]))
    assert trace[0, 1999] > 0.99
    assert trace[1, 2005] > 0.99
    assert after[1] > 0.99


def test_the_pool_forgets_at_the_beginning_of_a_text():
    joint = pool(adapt=True)
    first = joint.score(text(50, 3)[None])
    joint.begin(1)
    assert torch.equal(joint.score(text(50, 3)[None]), first)


def test_rows_are_taken_and_joined_in_all_members():
    joint, other = pool(), pool()
    joint.begin(2)
    joint.read(text(6, 4).view(2, 3))
    expected = joint.foresee()[:, [1, 1, 0]]
    joint.take(torch.tensor([1, 1, 0]))
    assert torch.equal(joint.foresee(), expected)
    same = Pool([Member(m.name, m.reader, m.weight) for m in joint.members])
    assert same.names == joint.names
    alone = Pool([Member("network", fixed(3, 1))])
    more = Pool([Member("network", fixed(3, 1))])
    more.begin(2)
    alone.join(more)
    assert alone.foresee().shape == (3, 3, V)
    with pytest.raises(LangevinError, match=r"expected a pool of the same members to join, .+; "):
        other.join(alone)


@pytest.mark.parametrize("act", [
    lambda joint: joint.begin(2), lambda joint: joint.take(torch.tensor([0, 0])),
    lambda joint: joint.join(pool()),
])
def test_one_text_at_a_time_is_adapted_to(act):
    with pytest.raises(LangevinError, match=r"expected one text to adapt to, got 2 rows; .+"):
        act(pool(adapt=True))


@pytest.mark.parametrize(("members", "expected"), [
    ([], "expected members of different names to pool, got none; "),
    ([Member("a", fixed(1, 1)), Member("a", fixed(1, 2))], "different names to pool, got a, a; "),
    ([Member("a", fixed(1, 1), -1.0)], "expected weights of zero or more, and one above, got"),
    ([Member("a", fixed(1, 1), 0.0)], "expected weights of zero or more, and one above, got"),
])
def test_impossible_pools_are_refused(members, expected):
    with pytest.raises(LangevinError, match=expected):
        Pool(members)


def test_members_over_other_vocabularies_are_refused():
    joint = Pool([Member("a", fixed(1, 1)), Member("b", fixed(1, 2, size=4))])
    with pytest.raises(LangevinError, match=r"same tokens, got a over 5, b over 4; pool what"):
        joint.foresee()
