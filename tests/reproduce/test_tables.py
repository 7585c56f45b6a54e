import json
import math
from pathlib import Path

import pytest

from langevin.posterior.uncertainty import STATISTICS
from langevin.reproduce.pages import page, table_of
from langevin.reproduce.tables import Number, cell_rows, claims, load, ours
from langevin.reproduce.targets import TARGETS

ROOT = Path(__file__).parents[2]
PTB = TARGETS["ptb"]


def result(single, averaged, chosen, temperature=0.0):
    scores = {key: {"nll": math.log(value), "perplexity": value} for key, value in
              {"single": single, "averaged": averaged}.items()}
    early = {"valid": [4.0, 4.5], "test": [averaged + 2, single]}
    each = {split: [{"nll": math.log(value), "perplexity": value} for value in early[split]] for split in early}
    return {"temperature": temperature, "test": scores | {"each": each["test"]}, "valid": {"each": each["valid"]},
            "chosen": {"test": math.log(chosen)}}


@pytest.fixture
def folder(tmp_path):
    for name, numbers in {
        "ptb-small-random-sgd": (120.0, 115.0, 114.0), "ptb-small-random-sgld": (121.0, 110.0, 108.0),
        "ptb-small-random-sgld.seed1": (123.0, 114.0, 110.0),
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result(*numbers)))
    return tmp_path


def test_rows_hold_mean_spread_and_difference_to_the_paper(folder):
    rows = {row["cell"]: row for row in cell_rows(PTB, load(folder, PTB))}
    row = rows["ptb-small-random-sgld"]
    assert row["averaged"] == Number(112.0, pytest.approx(math.sqrt(8)), 2)
    assert row["chosen"].mean == pytest.approx(109)
    assert row["difference"] == pytest.approx(112 - 117.36)
    assert rows["ptb-small-random-sgd"]["averaged"].std is None
    assert rows["ptb-large-random-sgd"]["averaged"] is None


def test_the_claim_is_judged_against_last_and_averaged_twin(folder):
    (claim,) = claims(PTB, load(folder, PTB))
    assert (claim["sampler"], claim["beats_last"], claim["beats_averaged"]) == ("ptb-small-random-sgld", True, True)
    assert claim["beats_chosen"]
    assert claim["beats_best"]
    assert claim["gain"] == pytest.approx(5 / 117)  # over the sample that validation prefers
    (folder / "ptb-small-random-sgd.json").write_text(json.dumps(result(111.0, 105.0, 104.0)))
    (claim,) = claims(PTB, load(folder, PTB))
    assert not claim["beats_last"]
    assert not claim["beats_best"]
    assert not claim["beats_averaged"]
    assert not claim["beats_chosen"]
    assert "| perplexity | **no** | **no** | **no** | **no** | -4.7 % |" in page(folder)


def test_tables_name_what_was_not_run(folder):
    text = table_of(PTB, load(folder, PTB))
    numbers = "122.00 ± 1.41 | 114.00 ± 2.83 | 112.00 ± 2.83 | 109.00 ± 1.41"
    assert f"| `ptb-small-random-sgld` | 0 | 117.36 | {numbers} | -5.36 | 2 |" in text
    assert "| `ptb-large-random-sgd` | — | 130.25 | — | — | — | — | — | 0 |" in text


def test_the_page_in_docs_is_made_from_the_results():
    assert (ROOT / "docs" / "reproduce.md").read_text() == page(ROOT / "results"), "run 'langevin tables'"


def test_calibration_and_rejection_of_the_sentence_sets(tmp_path):
    scores = {"error": 8.0, "nll": 0.3, "brier": 0.1, "ece": 0.05}
    areas = dict.fromkeys(STATISTICS, 0.02) | {"entropy": 0.01}
    kept = {"aurc": areas, "risk": 0.05, "coverage": 0.5, "held": True}
    for name, rejection in {"trec-psgld": kept, "trec-psgld.seed1": {"aurc": areas, "refused": "too few"}}.items():
        content = {"temperature": 0.1, "chosen": {"test": 8.0}, "rejection": rejection,
                   "test": {"single": scores, "averaged": scores | {"nll": 0.2}, "each": [scores]},
                   "valid": {"each": [scores]}}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    runs = load(tmp_path, TARGETS["sentences"])["trec-psgld"]
    assert ours(runs, "chosen", "error").mean == 8
    assert ours(runs, "chosen", "nll") is None  # it was not chosen by that
    text = page(tmp_path)
    assert "| `trec-psgld` | average | 0.200 ± 0.000 | 0.100 ± 0.000 | 0.050 ± 0.000 |" in text
    assert "| `trec-psgld` | dropout, 20 masks |" not in text
    assert "| 20.0 | **10.0** | 20.0 | 20.0 | 1 of 2 | 0.50 | 1 of 1 |" in text
