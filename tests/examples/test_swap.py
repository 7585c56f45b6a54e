"""The example runs, with few steps, and its arms are treated alike."""

import runpy
from pathlib import Path

import pytest

SWAP = Path(__file__).parents[2] / "examples" / "swap.py"


@pytest.fixture
def swap():
    pytest.importorskip("sklearn")
    functions = runpy.run_path(str(SWAP))
    functions["main"].__globals__["STEPS"] = 20
    return functions


def test_it_prints_all_arms_and_their_differences(swap, capsys):
    swap["main"](quick=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "RMSprop", "RMSprop, weight decay", "PSGLD", "PSGLD less RMSprop",
        "PSGLD less RMSprop, weight decay",
    ]  # fmt: skip
    assert all(line.count("±") == 3 for line in lines[1:])


def test_every_arm_has_as_many_trials(swap):
    assert {len(set(settings)) for settings in swap["ARMS"].values()} == {9}
