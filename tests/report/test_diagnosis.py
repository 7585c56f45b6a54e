"""Numbers as people read them."""

import math

import pytest

from langevin.report.diagnosis import rounded, ordinal, with_error


@pytest.mark.parametrize(("value", "text"), [(math.nan, "—"), (math.inf, "∞"), (1.23456, "1.235"), (0.0, "0")])
def test_figures(value, text):
    assert rounded(value) == text


def test_errors_and_ordinals():
    assert with_error(0.30612, 0.0113) == "0.306 ± 0.011"
    assert with_error(math.nan, math.nan) == "—"
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 22)] == ["1st", "2nd", "3rd", "4th", "11th", "22nd"]
