"""The way from zero to the top of a wide prior."""

import pytest

from langevin.models.logistic import path_to


@pytest.mark.parametrize(("wide", "path"), [
    (0.25, [0.25]), (4.0, [4.0]), (5.0, [4.0, 5.0]), (64.0, [4.0, 16.0, 64.0]),
    (100.0, [4.0, 16.0, 64.0, 100.0]),
])  # fmt: skip
def test_it_is_walked_in_steps_of_four(wide, path):
    assert path_to(wide) == path
