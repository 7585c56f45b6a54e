"""Sets of vectors side by side: centred, at one scale, with nothing for unknown words."""

import numpy as np
import torch

from langevin.data.frozen_vectors import WIDEST, side_by_side
from langevin.data.vectors import WordVectors

WORDS = ["snow", "Rome", "iron", "absent"]


def vectors(words, dim, seed=0, shift=0.0):
    matrix = np.random.default_rng(seed).normal(size=(len(words), dim)).astype(np.float32) + shift
    return WordVectors("v", {word: row for row, word in enumerate(words)}, matrix, "0" * 64)


def test_each_set_is_centred_and_scaled_on_the_words_it_has():
    one, two = vectors(["snow", "rome", "iron"], 4, shift=9), vectors(["snow", "iron"], 3, seed=1)
    table = side_by_side([one, two], WORDS).float()
    assert table.shape == (4, 7)
    assert not table[3].any()
    assert not table[1, 4:].any()  # the second set has no Rome
    first, second = table[:3, :4], table[[0, 2], 4:]
    for part in (first, second):
        torch.testing.assert_close(part.mean(0), torch.zeros(part.shape[1]), atol=1e-3, rtol=0)
        torch.testing.assert_close(part.square().mean(), torch.tensor(1.0), atol=2e-3, rtol=0)


def test_of_many_numbers_the_principal_components_stay():
    words = [f"w{n}" for n in range(50)]
    wide = vectors(words, WIDEST + 60)
    table = side_by_side([wide], [*words, "absent"]).float()
    assert table.shape == (51, WIDEST)
    assert not table[-1].any()
    centred = torch.from_numpy(wide.matrix - wide.matrix.mean(0))
    ratio = torch.cdist(table[:50], table[:50]) / torch.cdist(centred, centred).clamp(min=1e-9)
    kept = ratio[~torch.eye(50, dtype=torch.bool)]
    assert kept.std() < 0.01 * kept.mean()  # 50 points lie in 49 directions: all distances stay
