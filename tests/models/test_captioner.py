import pytest
import torch

from langevin.models.captioner import Captioner

FEATURES = torch.randn(5, 12, generator=torch.Generator().manual_seed(1))
TOKENS = torch.randint(20, (5, 7), generator=torch.Generator().manual_seed(2))


def build(**settings):
    torch.manual_seed(0)
    defaults = {"cell": "lstm", "embed": 8, "hidden": 16, "layers": 1}
    model = Captioner(12, 20, **(defaults | settings))
    model.centre_on(FEATURES + 2)
    return model


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("image_as", ["word", "state"])
def test_word_by_word_equals_the_whole(cell, layers, image_as):
    model = build(cell=cell, layers=layers, image_as=image_as, dropout=0.5).eval()
    logits = model(FEATURES, TOKENS)
    assert logits.shape == (5, 7, 20)
    carry = model.begin(FEATURES)
    for time in range(7):
        step, carry = model.step(TOKENS[:, time], carry)
        torch.testing.assert_close(step, logits[:, time], rtol=1e-5, atol=1e-6)


def test_equals_torch_with_the_image_as_first_input():
    model = build()
    layer = torch.nn.LSTM(8, 16, batch_first=True)
    layer.load_state_dict(dict(model.recurrent.layers[0].state_dict()))
    scaled = (FEATURES - model.centre) / model.spread
    inputs = torch.cat([model.image(scaled)[:, None], model.embedding(TOKENS)], 1)
    torch.testing.assert_close(model(FEATURES, TOKENS), model.output(layer(inputs)[0][:, 1:]))


def test_equals_torch_with_the_image_as_first_state():
    model = build(image_as="state")
    layer = torch.nn.LSTM(8, 16, batch_first=True)
    layer.load_state_dict(dict(model.recurrent.layers[0].state_dict()))
    h, c = model.image((FEATURES - model.centre) / model.spread).split(16, 1)
    states, _ = layer(model.embedding(TOKENS), (h.tanh()[None], c[None]))
    torch.testing.assert_close(model(FEATURES, TOKENS), model.output(states))


def test_place_and_scale_of_features_do_not_matter():
    one, other = build(), build()
    one.centre_on(FEATURES)
    other.centre_on(100 * FEATURES + 7)
    torch.testing.assert_close(one(FEATURES, TOKENS), other(100 * FEATURES + 7, TOKENS), rtol=1e-4, atol=1e-5)
    seen = (FEATURES - one.centre) / one.spread
    torch.testing.assert_close(seen.mean(0), torch.zeros(12), rtol=0, atol=1e-6)
    torch.testing.assert_close(seen.square().sum(1).mean(), torch.tensor(8.0))
    one.centre_on(torch.ones(4, 12))  # all alike
    assert torch.isfinite(one(torch.zeros(5, 12), TOKENS)).all()


@pytest.mark.parametrize("image_as", ["word", "state"])
def test_the_image_and_earlier_words_matter_later_words_do_not(image_as):
    model = build(image_as=image_as)
    before = model(FEATURES, TOKENS)
    assert not torch.allclose(before[:, -1], model(FEATURES.flip(0), TOKENS)[:, -1])
    changed = TOKENS.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 20
    after = model(FEATURES, changed)
    torch.testing.assert_close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4:], before[:, 4:])


@pytest.mark.parametrize("kind", ["naive", "gal", "gaussian"])
def test_dropout_acts_in_training_only(kind):
    model = build(dropout=0.5, dropout_kind=kind)
    first, second = model(FEATURES, TOKENS), model(FEATURES, TOKENS)
    assert not torch.allclose(first, second)
    torch.testing.assert_close(model.eval()(FEATURES, TOKENS), build().eval()(FEATURES, TOKENS))


def test_gal_keeps_one_mask_along_time_for_image_words_and_output():
    model = build(dropout=0.5, dropout_kind="gal")
    dropped = model.hidden(FEATURES, TOKENS) == 0
    assert (dropped == dropped[:, :1]).all()
    assert 0.2 < dropped.float().mean() < 0.8


def test_tied_weights_are_one():
    model = build(embed=16, tied=True)
    assert model.output.weight is model.embedding.weight


@pytest.mark.parametrize("kind", ["naive", "gal"])
def test_bfloat16_products_follow_float32(kind):
    model = build(dropout=0.5, dropout_kind=kind)
    with torch.autocast("cpu", torch.bfloat16):
        torch.manual_seed(5)
        short = model(FEATURES, TOKENS)
        short.float().square().mean().backward()
    torch.manual_seed(5)
    assert (short.float() - model(FEATURES, TOKENS)).abs().max() < 0.05
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in model.parameters())


def test_positive_features_of_a_wide_network_are_not_lost():
    """A preconditioned optimiser must not drive the first input into saturation, where all images
    look alike."""
    torch.manual_seed(0)
    classes = torch.arange(64) % 4
    pattern = torch.rand(4, 1024)
    features = (0.5 + pattern[classes] + 0.3 * torch.randn(64, 1024)).abs()
    tokens = torch.stack([torch.full((64,), 19), classes], 1)
    model = Captioner(1024, 20, cell="lstm", embed=16, hidden=16, layers=1)
    model.centre_on(features)
    optimiser = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    for _ in range(60):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(features, tokens[:, :1])[:, 0], tokens[:, 1])
        loss.backward()
        optimiser.step()
    assert loss < 0.1  # without the centre it stays near log 4
