import pytest
import torch

from langevin.models.captioner import Captioner
from langevin.models.stacked import reorder
from langevin.posterior.ensemble import Ensemble

FEATURES = torch.randn(13, 12, generator=torch.Generator().manual_seed(1))


def members(cell, layers, tied=False, image_as="word"):
    for seed in range(3):
        torch.manual_seed(seed)
        model = Captioner(12, 20, cell=cell, embed=16 if tied else 8, hidden=16, layers=layers, tied=tied,
                          image_as=image_as).eval()
        model.centre_on(FEATURES + seed)
        yield model


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize(("layers", "tied"), [(1, False), (2, False), (1, True)])
@pytest.mark.parametrize("rows", [1, 13])
@pytest.mark.parametrize("image_as", ["word", "state"])
def test_all_samples_at_once_equal_one_after_another(cell, layers, tied, rows, image_as):
    models = list(members(cell, layers, tied, image_as))
    ensemble = Ensemble(models[0], models, plan="batched")
    features, tokens = FEATURES[:rows], torch.randint(20, (rows, 4), generator=torch.Generator().manual_seed(2))
    tokens[:, 1] = 3  # a word that all rows share
    order = torch.arange(rows).flip(0)
    with torch.no_grad():
        whole = ensemble(features, tokens)
        carry = reorder(ensemble(features, method="begin"), order)
        for time in range(4):
            logits, carry = ensemble(tokens[order, time], carry=carry, method="step")
            for number, model in enumerate(models):
                expected = model(features, tokens)
                torch.testing.assert_close(whole[number], expected, rtol=1e-5, atol=1e-5)
                torch.testing.assert_close(logits[number], expected[order, time], rtol=1e-5, atol=1e-5)
