"""Scores out of fold: of rows by linear parts that were fitted to the others."""

import numpy as np
import torch

from langevin.models.linear import LinearChoice
from langevin.models.linear_fit import cross_fit, fit_linear

from tests.models.test_linear import CLASSES, nll_of, reviews
from tests.models.test_linear import vectors as vectors  # a fixture


def test_scores_out_of_fold_know_nothing_of_their_labels(vectors):
    rows, labels = vectors
    scores = cross_fit(rows, labels, CLASSES, seed=2, draws=3)
    assert scores.shape == (3, 240, 3)
    inside = fit_linear(rows, labels, CLASSES, seed=2, draws=3).log_probs(rows)
    assert nll_of(inside, labels) < nll_of(scores, labels) < 0.75
    noise = [CLASSES[n] for n in np.random.default_rng(0).integers(3, size=240)]
    assert nll_of(cross_fit(rows, noise, CLASSES), noise) > 1.05  # log 3 is 1.0986
    choice = LinearChoice(4.0, 1, 0.0)
    before = cross_fit(rows, labels, CLASSES, choice=choice)
    other = [*labels]
    other[7] = CLASSES[(CLASSES.index(labels[7]) + 1) % 3]
    assert not torch.equal(cross_fit(rows, other, CLASSES, choice=choice), before)


def test_out_of_fold_scores_of_a_class_that_only_its_fold_has():
    texts, labels = reviews(40, 0)
    scores = cross_fit([*texts, "a parrot sang"], [*labels, "bird"], (*CLASSES, "bird"),
                       choice=LinearChoice(4.0, 1, 0.0))
    assert bool(scores.isfinite().all())
    assert float(scores[:, -1, 3].exp().mean()) < 0.2
