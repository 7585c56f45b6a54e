"""Samples as a reader: the numbers of the ensemble, whatever the chunks, the rows, their order."""

import pytest
import torch

from langevin.errors import LangevinError
from langevin.models.counts import Counts
from langevin.models.language_model import LanguageModel
from langevin.posterior import ensemble_reader
from langevin.posterior.ensemble import Ensemble
from langevin.posterior.ensemble_reader import EnsembleReader
from langevin.posterior.mixture import log_mixture
from langevin.posterior.pool import Member, Pool

V, START, CLOSE = 7, 3, {"atol": 1e-6, "rtol": 0}


def network(seed: int, cell: str = "lstm") -> LanguageModel:
    torch.manual_seed(seed)
    model = LanguageModel(V, cell=cell, embed=5, hidden=6, layers=2)
    for tensor in model.parameters():
        torch.nn.init.normal_(tensor, std=0.7)
    return model.eval()


def made(cell: str = "lstm") -> EnsembleReader:
    networks = [network(seed, cell) for seed in range(3)]
    return EnsembleReader(Ensemble(networks[0], networks), V, START)


def text(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, (rows, length), generator=torch.Generator().manual_seed(seed))


def scored(reader: EnsembleReader, tokens: torch.Tensor) -> torch.Tensor:
    inputs = torch.cat([torch.full((len(tokens), 1), START), tokens[:, :-1]], 1)
    each = reader.ensemble.score(inputs, targets=tokens).each
    assert each is not None
    return each


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("size", [1, 4, 40])
def test_a_chunk_is_read_as_the_ensemble_scores_it(cell, size, monkeypatch):
    monkeypatch.setattr(ensemble_reader, "LOGITS", V * 2 * 9)  # so that reading cuts chunks, too
    reader, tokens = made(cell), text(2, 40)
    reader.begin(2)
    found = torch.cat([reader.read(piece) for piece in tokens.split(size, 1)], 2)
    torch.testing.assert_close(found, scored(reader, tokens), **CLOSE)
    average = reader.ensemble.score(torch.cat([torch.full((2, 1), START), tokens[:, :-1]], 1),
                                    targets=tokens).log_probs
    torch.testing.assert_close(log_mixture(found, reader.weights).float(), average, **CLOSE)


def test_what_is_foreseen_is_what_is_read():
    reader, tokens = made(), text(2, 12)
    reader.begin(2)
    expected = scored(reader, tokens)
    for at, column in enumerate(tokens.unbind(1)):
        log_p = reader.foresee()
        assert torch.equal(log_p, reader.foresee())
        torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(3, 2))
        read = reader.read(column[:, None])[..., 0]
        torch.testing.assert_close(log_p[:, torch.arange(2), column], read, **CLOSE)
        torch.testing.assert_close(read, expected[..., at], **CLOSE)


def test_foreseeing_before_a_chunk_changes_nothing():
    reader, tokens = made(), text(2, 12)
    reader.begin(2)
    reader.foresee()
    found = torch.cat([reader.read(tokens[:, :5]), reader.read(tokens[:, 5:5]),
                       reader.read(tokens[:, 5:])], 2)
    torch.testing.assert_close(found, scored(reader, tokens), **CLOSE)


def readers() -> dict[str, object]:
    counts = Counts.learn(text(1, 300)[0], V, 3, start=[START])
    members = [Member("network", made(), 0.6), Member("counts", counts.reader(), 0.4)]
    return {"network": made(), "counts": counts.reader(), "pool": Pool(members)}


@pytest.mark.parametrize("kind", ["network", "counts", "pool"])
def test_all_that_is_foreseen_along_a_chunk_is_foreseen_step_by_step(kind):
    reader, tokens = readers()[kind], text(2, 9, 1)
    reader.begin(2)
    steps = []
    for column in tokens.unbind(1):
        steps.append(reader.foresee())
        reader.read(column[:, None])
    after = reader.foresee()
    reader.begin(2)
    pieces = [reader.foresee_along(piece) for piece in tokens.split([4, 0, 5], 1)]
    torch.testing.assert_close(torch.cat(pieces, 2), torch.stack(steps, 2), **CLOSE)
    torch.testing.assert_close(reader.foresee(), after, **CLOSE)


def test_a_pool_that_adapts_does_so_along_a_chunk():
    def adapting() -> Pool:
        counts = Counts.learn(text(1, 300)[0], V, 3, start=[START])
        return Pool([Member("network", made(), 0.6),
                     Member("counts", counts.reader(adapt=True), 0.4)], adapt=True)

    one, other, tokens = adapting(), adapting(), text(1, 30, 2)
    read = one.read(tokens)
    along = other.foresee_along(tokens).gather(-1, tokens.expand(4, -1, -1)[..., None])[..., 0]
    torch.testing.assert_close(along, read, **CLOSE)
    torch.testing.assert_close(other.read_with, one.read_with, **CLOSE)
    assert not torch.allclose(other.weights, other.prior)


@pytest.mark.parametrize("foreseen", [False, True])
def test_rows_that_are_taken_go_on_as_they_were(foreseen):
    reader, tokens, rows = made(), text(3, 8), torch.tensor([2, 0, 2, 1])
    reader.begin(3)
    expected = scored(reader, tokens)[:, rows]
    found = reader.read(tokens[:, :4])[:, rows]
    if foreseen:
        reader.foresee()
    reader.take(rows)
    assert reader.weights.shape == (3, 4)
    found = torch.cat([found, reader.read(tokens[rows, 4:])], 2)
    torch.testing.assert_close(found, expected, **CLOSE)
    with pytest.raises(LangevinError, match="rows from 0 to 3"):
        reader.take(torch.tensor([4]))


@pytest.mark.parametrize(("early", "late"), [(5, 0), (5, 3), (0, 3), (0, 0)])
def test_rows_that_join_later_read_as_they_would_alone(early, late):
    one, tokens = made(), text(2, 12)
    other = EnsembleReader(one.ensemble, V, START)
    one.begin(1)
    before = one.read(tokens[:1, :early])
    other.read(tokens[1:, :late])
    one.foresee()
    one.join(other)
    after = one.read(torch.cat([tokens[:1, early : early + 5], tokens[1:, late : late + 5]]))
    expected = scored(one, tokens)
    found = torch.cat([before, after[:, :1]], 2)
    torch.testing.assert_close(found, expected[:, :1, : early + 5], **CLOSE)
    torch.testing.assert_close(after[:, 1:], expected[:, 1:, late : late + 5], **CLOSE)
    with pytest.raises(LangevinError, match="same samples"):
        one.join(made())


def test_what_cannot_be_read_is_refused():
    reader = made()
    with pytest.raises(LangevinError, match="texts alone"):
        reader.begin(1, torch.zeros(1, 4))
    with pytest.raises(LangevinError, match="integer tokens in 1 rows"):
        reader.read(torch.zeros(2, 3, dtype=torch.long))
