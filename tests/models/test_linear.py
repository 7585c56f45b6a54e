"""The linear posterior: its maths against plain forms, what it chooses, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from langevin.errors import LangevinError
from langevin.models.linear import LinearChoice, LinearPosterior
from langevin.models.linear_fit import TEMPERATURE, fit_linear
from langevin.models.logistic import Labelled, find_top, log_softmax, logistic_nll, spread

CLASSES = ("food", "room", "price")
WORDS = {
    "food": ["soup", "bread", "cook", "taste", "dinner", "plate", "spicy"],
    "room": ["bed", "window", "bath", "quiet", "carpet", "lamp", "view"],
    "price": ["bill", "cheap", "dear", "money", "paid", "euros", "refund"],
}
COMMON = ["the", "was", "and", "very", "it", "we", "our", "a", "not"]


def reviews(rows: int, seed: int) -> tuple[list[str], list[str]]:
    """Sentences of six words, one or two of which tell the label, one time in ten wrongly."""
    draw = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(rows):
        label = CLASSES[draw.integers(3)]
        told = CLASSES[draw.integers(3)] if draw.random() < 0.1 else label
        words = [*draw.choice(WORDS[told], draw.integers(1, 3)), *draw.choice(COMMON, 4)]
        texts.append(" ".join(draw.permutation(words)))
        labels.append(label)
    return texts, labels


def nll_of(log_probs: Tensor, labels: list[str]) -> float:
    numbers = torch.tensor([CLASSES.index(label) for label in labels])
    mean = log_probs.exp().mean(0).log()
    return float(-mean[torch.arange(len(labels)), numbers].mean())


@pytest.fixture(scope="module")
def fitted() -> LinearPosterior:
    return fit_linear(*reviews(300, 0), CLASSES, valid=reviews(100, 1), seed=3)


@pytest.fixture(scope="module")
def vectors() -> tuple[Tensor, list[str]]:
    """Three clouds in eight dimensions at odd scales, one of which is constant."""
    draw = torch.Generator().manual_seed(0)
    numbers = torch.arange(240) % 3
    rows = torch.randn(240, 8, generator=draw) + 1.5 * torch.eye(8)[numbers]
    rows = rows * torch.logspace(-2, 3, 8) + 100
    rows[:, 7] = 5
    return rows, [CLASSES[number] for number in numbers]


def test_features_are_those_of_scikit_learn(fitted):
    texts, _ = reviews(300, 0)
    least = fitted.choice.least
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=least, sublinear_tf=True,
                            token_pattern=r"\w+|[^\w\s]").fit(texts)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2,
                                 sublinear_tf=True).fit(texts)
    new = ["The soup!  was COLD", "", "zzz", "bed bed bed"]
    plain = np.hstack([words.transform(new).toarray(), characters.transform(new).toarray(),
                       np.ones((4, 1))])
    np.testing.assert_allclose(fitted.features(new).toarray(), plain, atol=1e-6)


@pytest.mark.parametrize("prior_variance", [0.5, 30.0])
def test_top_is_that_of_scikit_learn(fitted, prior_variance):
    texts, labels = reviews(300, 0)
    rows = fitted.features(texts)
    numbers = np.array([CLASSES.index(label) for label in labels])
    data = Labelled(rows, numbers, np.ones(300, np.float32))
    top = find_top(data, prior_variance, np.zeros((rows.shape[1], 3), np.float32))
    rival = LogisticRegression(C=prior_variance, fit_intercept=False, tol=1e-8, max_iter=2000)
    rival.fit(rows.toarray().astype(np.float64), numbers)
    new = fitted.features(reviews(50, 5)[0])
    np.testing.assert_allclose(log_softmax(new @ top),
                               rival.predict_log_proba(new.toarray()), atol=0.03)
    again = find_top(data, prior_variance, top)
    assert logistic_nll(data, again) == pytest.approx(logistic_nll(data, top), abs=1e-4)


def test_deviation_is_the_diagonal_of_the_hessian():
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(40, 5)).astype(np.float32)
    data = Labelled(rows, draw.integers(3, size=40), draw.uniform(0.5, 2, 40).astype(np.float32))
    weights = draw.normal(size=(5, 3)).astype(np.float32)

    def objective(flat: Tensor) -> Tensor:
        w = flat.reshape(5, 3)
        scores = (torch.from_numpy(rows).double() @ w).log_softmax(1)
        own = scores[torch.arange(40), torch.from_numpy(data.classes)]
        return -(torch.from_numpy(data.weights) * own).sum() + flat.square().sum() / (2 * 0.7)

    flat = torch.from_numpy(weights).double().ravel()
    hessian = torch.autograd.functional.hessian(objective, flat)
    np.testing.assert_allclose(spread(data, weights, 0.7, 0.01).ravel(),
                               (0.01 / hessian.diagonal()).sqrt(), rtol=1e-4)


def test_draws_have_the_mean_and_deviation_that_are_stored(fitted):
    z = (torch.stack([torch.from_numpy(fitted._draw(s)) for s in range(12)])
         - fitted.weights) / fitted.deviation
    assert abs(float(z.mean())) < 5 / z.numel() ** 0.5
    assert float(z.square().mean()) == pytest.approx(1, abs=8 / z.numel() ** 0.5)
    pairs = torch.corrcoef(z.flatten(1)) - torch.eye(12)
    assert float(pairs.abs().max()) < 6 / z[0].numel() ** 0.5
    columns = torch.corrcoef(z.transpose(1, 2).flatten(0, 0).transpose(0, 1).flatten(1))
    assert float((columns - torch.eye(3)).abs().max()) < 6 / (z.numel() / 3) ** 0.5


def test_average_of_draws_is_as_good_as_the_point(fitted):
    texts, labels = reviews(400, 2)
    log_probs = fitted.log_probs(texts)
    assert log_probs.shape == (12, 400, 3)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(12, 400))
    point = torch.from_numpy(log_softmax(fitted.features(texts) @ fitted.weights.numpy()))
    assert nll_of(log_probs, labels) < 0.6
    assert nll_of(log_probs, labels) == pytest.approx(nll_of(point[None], labels), abs=0.01)
    assert float(log_probs.std(0).mean()) > 0.01


def test_temperature_of_draws(fitted):
    hotter = LinearPosterior(**{**vars(fitted), "deviation": fitted.deviation * 10, "_drawn": []})
    texts, labels = reviews(400, 2)
    assert nll_of(hotter.log_probs(texts), labels) > nll_of(fitted.log_probs(texts), labels)
    assert TEMPERATURE == 0.01


def test_prior_variance_is_that_of_least_validation_nll(fitted):
    valid = reviews(100, 1)
    chosen = fitted.choice
    for factor in (0.5, 2):
        other = LinearChoice(chosen.prior_variance * factor, chosen.least, 0)
        rival = fit_linear(*reviews(300, 0), CLASSES, choice=other)
        point = log_softmax(rival.features(valid[0]) @ rival.weights.numpy())
        assert nll_of(torch.from_numpy(point)[None], valid[1]) > chosen.nll - 1e-3


def test_the_same_twice_and_other_draws_by_another_seed(fitted):
    again = fit_linear(*reviews(300, 0), CLASSES, valid=reviews(100, 1), seed=3)
    texts = reviews(20, 4)[0]
    assert torch.equal(again.log_probs(texts), fitted.log_probs(texts))
    other = fit_linear(*reviews(300, 0), CLASSES, choice=fitted.choice, seed=4)
    torch.testing.assert_close(other.weights, fitted.weights, atol=0.02, rtol=0)
    assert not torch.equal(other.log_probs(texts), fitted.log_probs(texts))


def test_a_text_has_the_same_answer_alone_and_among_others(fitted):
    texts = ["", "   ", "unheard of", *reviews(20, 4)[0]]
    together = fitted.log_probs(texts)
    alone = torch.cat([fitted.log_probs([text]) for text in texts], 1)
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(together[:, 0], together[:, 1])  # blank is blank
    assert fitted.log_probs([]).shape == (12, 0, 3)


def test_written_and_read_back(fitted, vectors):
    dense = fit_linear(*vectors, CLASSES, seed=1, class_weight="balanced")
    for posterior, items in ((fitted, reviews(30, 6)[0]), (dense, vectors[0][:30])):
        back = LinearPosterior.from_tensors(load(save(posterior.to_tensors())))
        assert torch.equal(back.log_probs(items), posterior.log_probs(items))
        assert (back.choice, back.classes, back.class_weight) == (
            posterior.choice, posterior.classes, posterior.class_weight)  # fmt: skip


def spoil(name: str, change) -> dict[str, Tensor]:
    posterior = fit_linear(*reviews(60, 0), CLASSES, choice=LinearChoice(4.0, 1, 0.0))
    tensors = posterior.to_tensors()
    if change is None:
        del tensors[name]
    else:
        tensors[name] = change(tensors[name].clone())
    return tensors


def replace(old: bytes, new: bytes):
    """Another record, in which something stands for something else."""
    def change(record: Tensor) -> Tensor:
        raw = record.numpy().tobytes()
        assert old in raw
        return torch.frombuffer(bytearray(raw.replace(old, new, 1)), dtype=torch.uint8)
    return change


@pytest.mark.parametrize(("name", "change", "message"), [
    ("record", None, "expected the tensors of a linear part"),
    ("record", lambda t: t[:-9], "expected the facts of a linear part, the whole is wrong"),
    ("record", replace(b"linear part 2", b"linear part 9"), "format is wrong"),
    ("record", replace(b'"room"', b'"food"'), "a class stands there twice"),
    ("record", replace(b'"words":[', b'"words":["soup",'), "some repeat|weights of at least 1"),
    ("record", replace(b'"prior_variance":4', b'"prior_variance":-4'), "prior_variance is wrong"),
    ("record", replace(b'"draws":12', b'"draws":0'), "draws is wrong"),
    ("record", replace(b'"seed"', b'"sead"'), "seed is wrong"),
    ("weights", None, "expected the tensors characters_idf"),
    ("weights", lambda t: t[:-1], "expected weights of shape"),
    ("deviation", lambda t: -t, "expected deviations of at least 0"),
    ("weights", lambda t: t.double(), "expected finite float32 numbers in weights"),
    ("weights", lambda t: t / 0, "expected finite float32 numbers in weights"),
    ("words_idf", lambda t: t[1:], "weights of at least 1 in words_idf"),
    ("characters_idf", lambda t: t * 0, "weights of at least 1 in characters_idf"),
])  # fmt: skip
def test_damaged_or_foreign_tensors_are_refused(name, change, message):
    with pytest.raises(LangevinError, match=message) as caught:
        LinearPosterior.from_tensors(spoil(name, change))
    assert "\n" not in str(caught.value)


def test_vectors_of_any_scale(vectors):
    rows, labels = vectors
    posterior = fit_linear(rows[:180], labels[:180], CLASSES)
    assert nll_of(posterior.log_probs(rows[180:]), labels[180:]) < 0.75
    moved = fit_linear(rows[:180] * 7 - 3, labels[:180], CLASSES)
    torch.testing.assert_close(moved.log_probs(rows[180:] * 7 - 3), posterior.log_probs(rows[180:]),
                               atol=0.02, rtol=0)


def test_balanced_classes_count_alike():
    texts, labels = reviews(400, 0)
    rare = [i for i, label in enumerate(labels) if label == "price"][:6]
    rows = [i for i, label in enumerate(labels) if label != "price"] + rare
    few = [texts[i] for i in rows], [labels[i] for i in rows]
    new, answers = reviews(300, 8)
    own = [i for i, label in enumerate(answers) if label == "price"]

    def recall(class_weight) -> float:
        fit = fit_linear(*few, CLASSES, choice=LinearChoice(4.0, 1, 0.0), class_weight=class_weight)
        return float((fit.log_probs(new).mean(0).argmax(1)[own] == 2).float().mean())

    assert recall("balanced") > recall(None) + 0.1


def test_one_row_of_each_class():
    texts, labels = ["cheap bill", "quiet bed", "good soup"], ["price", "room", "food"]
    with pytest.raises(LangevinError, match="two rows of some class"):
        fit_linear(texts, labels, CLASSES)
    posterior = fit_linear(texts, labels, CLASSES, valid=reviews(30, 0))
    answer = posterior.log_probs(["the soup was good"]).mean(0)
    assert CLASSES[int(answer.argmax())] == "food"


def test_fifty_classes_of_few_rows_and_a_prior_as_wide_as_it_gets():
    """Validation on the training rows asks for no prior at all; draws must not drown in it."""
    draw = np.random.default_rng(0)
    classes = tuple(f"topic {n}" for n in range(52))
    labels = [classes[n % 52] for n in range(520)]
    texts = [" ".join([*draw.choice(COMMON, 5), f"word{draw.integers(4)}of{label.split()[1]}"])
             for label in labels]
    posterior = fit_linear(texts, labels, classes, valid=(texts[:104], labels[:104]), draws=2)
    assert posterior.choice.prior_variance == 1024
    right = posterior.log_probs(texts).argmax(2) == torch.arange(520) % 52
    assert float(right.float().mean()) > 0.9


@pytest.mark.parametrize(("items", "labels", "classes", "message"), [
    (["soup", "bed"], ["food", "garden"], CLASSES, "got 'garden'"),
    (["soup", "bed"], ["food", "room"], CLASSES, "'price' has none"),
    (["soup", "bed"], ["food"], CLASSES, "a label for each of 2 items, got 1"),
    ([], [], CLASSES, "expected labelled items, got none"),
    ("soup", ["food"], CLASSES, "put it into a list"),
    (["soup", "bread"], ["food", "food"], ("food",), "two distinct classes"),
    (["soup", "bread"], ["food", "food"], ("food", "food"), "two distinct classes"),
    (["", " ", ""], ["food", "room", "price"], CLASSES, "all 3 of them are blank"),
    (torch.ones(3), ["food", "room", "price"], CLASSES, r"expected vectors \[items, numbers\]"),
    (torch.ones(3, 2) / 0, ["food", "room", "price"], CLASSES, "row 1 has others"),
])  # fmt: skip
def test_bad_input_is_refused(items, labels, classes, message):
    with pytest.raises(LangevinError, match=message) as caught:
        fit_linear(items, labels, classes, choice=LinearChoice(4.0, 1, 0.0))
    assert "\n" not in str(caught.value)


def test_other_items_than_fitted_are_refused(fitted, vectors):
    with pytest.raises(LangevinError, match="expected texts for this linear part, got vectors"):
        fitted.log_probs(vectors[0])
    dense = fit_linear(*vectors, CLASSES)
    with pytest.raises(LangevinError, match="expected vectors for this linear part, got texts"):
        dense.log_probs(["soup"])
    with pytest.raises(LangevinError, match=r"expected vectors \[items, 8\], got \[2, 7\]"):
        dense.log_probs(torch.ones(2, 7))
    with pytest.raises(LangevinError, match="got 'garden'"):
        fit_linear(*reviews(60, 0), CLASSES, valid=(["soup"], ["garden"]))
    with pytest.raises(LangevinError, match="expected labelled items, got none"):
        fit_linear(*reviews(60, 0), CLASSES, valid=([], []))
