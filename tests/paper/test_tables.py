import json
import math
from pathlib import Path

import pytest
import scipy.stats

from langevin.errors import LangevinError
from langevin.posterior.uncertainty import STATISTICS
from paper.numbers import OF_A_RUN, Number, load, ours, read_result, value_of
from paper.pages import not_run, page, table_of
from paper.scores import BEGIN, END, refresh
from paper.scoreboard import refresh_findings, scoreboard
from paper.tables import cell_rows, claims, column_rows, compared, rejection_summary
from paper.targets import TARGETS

ROOT = Path(__file__).parents[2]
PTB = TARGETS["ptb"]


def result(single, averaged, chosen, temperature=0.0):
    scores = {key: {"nll": math.log(value), "perplexity": value} for key, value in
              {"single": single, "averaged": averaged}.items()}
    early = {"valid": [4.0, 4.5], "test": [averaged + 2, single]}
    each = {split: [{"nll": math.log(value), "perplexity": value} for value in early[split]] for split in early}
    return {"temperature": temperature, "recipe": {"run": {"precision": "float32"}}, "samples": 1, "minutes": 1.0,
            "test": scores | {"each": each["test"]}, "valid": {"each": each["valid"]},
            "chosen": {"test": math.log(chosen)}}


@pytest.fixture
def folder(tmp_path):
    for name, numbers in {
        "ptb-small-random-sgd": (120.0, 115.0, 114.0), "ptb-small-random-sgld": (121.0, 110.0, 108.0),
        "ptb-small-random-sgld.seed1": (123.0, 114.0, 110.0),
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result(*numbers, 0.05 * ("sgld" in name))))
    return tmp_path


def test_rows_hold_mean_spread_and_difference_to_the_paper(folder):
    rows = {row["cell"]: row for row in cell_rows(PTB, load(folder, PTB))}
    row = rows["ptb-small-random-sgld"]
    assert row["averaged"] == Number(112.0, pytest.approx(math.sqrt(8)), 2)
    assert row["chosen"].mean == pytest.approx(109)
    assert row["difference"] == pytest.approx(112 - 117.36)
    optimiser = rows["ptb-small-random-sgd"]
    assert optimiser["averaged"].std is None
    # of the weights that validation would keep
    assert optimiser["difference"] == pytest.approx(117 - 123.85)
    assert rows["ptb-large-random-sgd"]["averaged"] is None


def test_the_claim_is_judged_against_last_best_and_averaged_twin(folder):
    (claim,) = claims(PTB, load(folder, PTB))
    assert claim["sampler"] == "ptb-small-random-sgld"
    answers = [claim[f"beats_{which}"] for which in ("last", "best", "averaged", "chosen")]
    assert [answer["answer"] for answer in answers] == ["yes"] * 4
    assert [answer["runs"] for answer in answers] == [1] * 4  # only one seed was run of both
    assert [answer["difference"] for answer in answers] == pytest.approx([-10, -7, -5, -6])
    assert claim["gain"] == pytest.approx(7 / 117)  # over the sample that validation prefers
    assert claim["paper"]
    (folder / "ptb-small-random-sgd.json").write_text(json.dumps(result(109.0, 105.0, 104.0)))
    assert "| perplexity | yes | **no**, +1.00 (one run) | **no**, +3.00 (one run) |" in page(folder)


def test_a_difference_that_a_t_test_cannot_tell_is_level(folder):
    (folder / "ptb-small-random-sgd.seed1.json").write_text(json.dumps(result(124.5, 113.0, 112.0)))
    (claim,) = claims(PTB, load(folder, PTB))
    assert claim["beats_last"]["answer"] == "yes"
    assert claim["beats_last"]["difference"] == pytest.approx(-10.25)  # -10 and -10.5, seed by seed
    assert claim["beats_averaged"]["answer"] == "level"  # -5 and +1
    assert "| level, -2.00 (± 4.24) |" in page(folder)


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 2.5, 1.2], [0.1, 0.5, 0.4, -0.1, 0.6], list(range(-3, 12))])
@pytest.mark.parametrize("shift", [0.0, 0.4, 1.0, 3.0, 20.0])
def test_levels_are_those_of_a_t_test(values, shift):
    runs = [[{"key": f"seed{k}", "test": {"averaged": {"nll": value}}, "recipe": {"run": {}}}
             for k, value in enumerate(numbers)]
            for numbers in ([value + shift for value in values], [0.0] * len(values))]
    told = compared(runs[0], "averaged", runs[1], "averaged", "nll")
    p_value = scipy.stats.ttest_1samp([value + shift for value in values], 0).pvalue
    assert (told["answer"] == "level") == (p_value > 0.05)
    # the same number
    assert compared(runs[0][:1], "averaged", runs[0][:1], "averaged", "nll")["answer"] == "level"


def test_calibration_is_compared_with_the_weights_of_the_least_nll():
    each = {"valid": [{"error": 9.0, "nll": 0.3}, {"error": 8.0, "nll": 0.5}],
            "test": [{"error": 9.5, "nll": 0.31, "ece": 0.02}, {"error": 8.5, "nll": 0.52, "ece": 0.07}]}
    run = {split: {"each": numbers} for split, numbers in each.items()}
    assert [value_of(run, "best", metric) for metric in ("error", "nll", "ece")] == [8.5, 0.31, 0.02]


@pytest.mark.parametrize("content", ['{"temperature": 0', "[]", "{}"])
def test_a_damaged_file_of_results_is_named(folder, content):
    (folder / "ptb-small-random-sgd.json").write_text(content)
    with pytest.raises(LangevinError, match=r"ptb-small-random-sgd\.json.*remove the file"):
        load(folder, PTB)


def test_where_more_is_better_the_gain_is_so_too(tmp_path):
    for cell, value in {"flickr8k-rmsprop": 0.2, "flickr8k-psgld": 0.22}.items():
        scores = {key: {"nll": 2.5, "perplexity": 12.0, "bleu_4": value} for key in ("single", "averaged")}
        without = [{"nll": 2.5, "perplexity": 12.0}]
        content = result(12.0, 12.0, 12.0) | {"test": scores | {"each": without}, "valid": {"each": without}}
        (tmp_path / f"{cell}.json").write_text(json.dumps(content))
    target = TARGETS["flickr8k"]
    found = {claim["metric"]: claim for claim in claims(target, load(tmp_path, target))}
    assert found["bleu_4"]["gain"] == pytest.approx(0.1)
    assert found["bleu_4"]["beats_last"]["answer"] == "yes"
    assert found["bleu_4"]["beats_best"] is None


def test_the_paper_s_own_order_is_told_where_it_is_the_other_way(folder):
    for name, value in {"sgd": 120.0, "sgld": 110.0}.items():
        path = folder / f"ptb-small-random-{name}-dropout.json"
        path.write_text(json.dumps(result(value, value, value)))
    found = {claim["sampler"]: claim for claim in claims(PTB, load(folder, PTB))}
    assert not found["ptb-small-random-sgld-dropout"]["paper"]


def test_tables_name_what_was_not_run(folder):
    text = table_of(PTB, load(folder, PTB))
    numbers = "122.00 ± 1.41 | 114.00 ± 2.83 | 112.00 ± 2.83 | 109.00 ± 1.41"
    assert f"| `ptb-small-random-sgld` | 0.05 | 117.36 | {numbers} | -5.36 | 2 | float32 |" in text
    assert "| `ptb-large-random-sgd` | — | 130.25 | — | — | — | — | — | 0 | — |" in text


def test_columns_rank_the_methods_and_compare_the_best(folder):
    (row,) = column_rows(PTB, load(folder, PTB))
    assert row["column"] == "ptb-small-random"
    assert row["paper"] == ["sgld", "sgd", "sgd-dropout", "sgld-dropout"]
    assert row["ours"] == ["sgld", "sgd"]  # 112 averaged, 117 by early stopping
    assert (row["best_of_paper"], row["better"]) == (117.36, True)
    # the best collections of SGLD, in the mean of its seeds
    assert row["best"] == pytest.approx(109)
    (folder / "ptb-small-random-sgd.json").write_text(json.dumps(result(105.0, 101.0, 130.0)))
    (row,) = column_rows(PTB, load(folder, PTB))
    assert (row["ours"], row["best"]) == (["sgd", "sgld"], 101)


def test_what_was_not_run_is_told_with_its_price_or_reason(folder):
    text = not_run(PTB, load(folder, PTB))
    assert "`ptb-small-successive-sgd-dropout`" in text
    assert text.startswith("Not run yet, in minutes of one core")
    assert "`ptb-large-successive-sgld-dropout` (about 8400 minutes a run)" in text
    assert "`ptb-small-random-sgld`," not in text
    assert not_run(TARGETS["flickr30k"], {}) == "Not run: its pictures are not at hand."


def test_ablation_gives_both_readings_of_no_average(folder):
    text = page(folder)
    assert "| ptb-small | ours, last weights | 120.00 | 122.00 ± 1.41 | 115.00 | 112.00 ± 2.83 | 1 and 2 |" in text
    assert "| ptb-small | ours, best sample | 117.00 | 114.00 ± 2.83 | 115.00 | 112.00 ± 2.83 | 1 and 2 |" in text
    assert "| ptb-small | ours, last weights − paper | -0.45 | -0.14 | +0.14 | +2.56 |  |" in text
    order = "| ptb-small | both, averaging only, optimiser, noise only | both, noise only, averaging only, optimiser |"
    assert f"{order} yes, -5.00 (one run) | yes, -7.00 (one run) |" in text
    assert "| trec | both, averaging only, optimiser, noise only | — | — | — |" in text


def test_temperatures_that_were_chosen_are_all_told(tmp_path):
    target = TARGETS["temperature-ptb"]
    for key, temperature in {"": 0.1, ".seed1": 0.01}.items():
        content = result(121.0, 110.0, 108.0, temperature)
        (tmp_path / f"ptb-small-successive-sgld.T0.1{key}.json").write_text(json.dumps(content))
    assert "| `ptb-small-successive-sgld.T0.1` | 0.01, 0.1 |" in table_of(target, load(tmp_path, target))


def test_a_sweep_shows_what_settings_are_chosen_by(tmp_path):
    target = TARGETS["temperature-ptb"]
    content = result(121.0, 110.0, 108.0, 0.1)
    content["valid"]["averaged"] = {"perplexity": 115.0}
    (tmp_path / "ptb-small-successive-sgld.T0.1.json").write_text(json.dumps(content))
    text = table_of(target, load(tmp_path, target))
    assert "| run | T | validation, average | last sample |" in text
    assert "| `ptb-small-successive-sgld.T0.1` | 0.1 | 115.00 | 121.00 |" in text


def test_the_page_in_docs_is_made_from_the_results():
    assert (ROOT / "docs" / "reproduce.md").read_text() == page(ROOT / "results"), "run 'python -m paper tables'"


def test_the_claims_in_the_findings_are_made_from_the_results():
    findings = (ROOT / "docs" / "findings.md").read_text()
    assert findings == refresh_findings(findings, ROOT / "results"), "run 'python -m paper tables'"


def test_twins_of_two_precisions_are_told(folder):
    path = folder / "ptb-small-random-sgd.json"
    path.write_text(path.read_text().replace("float32", "bfloat16"))
    assert "| yes, -5.00 (one run, of two precisions) |" in page(folder)


def test_the_scoreboard_answers_for_each_pair_and_sums_up(folder):
    text = scoreboard(folder)
    assert ("| `ptb-small-random-sgld` | 0.05 | perplexity | yes | yes, -7.00 (one run) | yes, -9.00 (one run) | "
            "yes, -5.00 (one run) | yes, -6.00 (one run) | 117.36 | 109.00 | yes |") in text
    assert "the paper's claim): single runs 1 yes\n" in text
    assert text.endswith("better than the paper's in 1 of 1 columns")
    (folder / "ptb-small-random-sgd.seed1.json").write_text(json.dumps(result(123.0, 116.0, 109.0)))
    text = scoreboard(folder)
    assert "| level, -5.50 (± 2.12) |" in text  # two runs tell little
    assert "the paper's claim): tested 1 level\n" in text
    # no cell of the table: nothing changes
    (folder / "ptb-small-random-sgld-tempered.json").write_text("{}")
    assert scoreboard(folder) == text


def test_below_the_printed_temperature_is_what_the_scoreboard_shows(tmp_path):
    for name in ("rmsprop", "psgld", "psgld-tempered"):
        (tmp_path / f"wp-rnn-{name}.json").write_text(json.dumps(result(1.4, 1.35, 1.3, 0.1 * (name != "rmsprop"))))
    text = scoreboard(tmp_path)
    assert "`wp-rnn-psgld-tempered`" in text
    assert "`wp-rnn-psgld`" not in text
    # the paper's own numbers: 125.44 and 117.85
    for name, order in {"dropout": "no", "": "yes"}.items():
        for method in ("sgd", "sgld"):
            cell = f"ptb-small-successive-{method}" + (f"-{name}" if name else "")
            (tmp_path / f"{cell}.json").write_text(json.dumps(result(120.0, 110.0, 109.0, 0.05 * (method == "sgld"))))
        assert f"| `{cell}` | 0.05 | perplexity | {order} |" in scoreboard(tmp_path)


def test_the_page_shows_each_sampler_beside_its_twin(folder):
    text = refresh(f"above {BEGIN}old{END} below", folder)
    assert text.startswith("above ")
    assert text.endswith(" below")
    assert "old" not in text.partition(BEGIN)[2].partition("\n\n")[0]
    assert ("| `ptb-small-random-sgld` | 0.05 | perplexity | 123.85, 117.36 | 117.00 | 115.00 | 110.00 | "
            "114.00 | **108.00** | 1 |") in text  # the one seed that was run of both
    with pytest.raises(LangevinError, match="results:begin"):
        refresh("no such lines", folder)


def test_calibration_and_rejection_of_the_sentence_sets(tmp_path):
    scores = {"error": 8.0, "nll": 0.3, "brier": 0.1, "ece": 0.05}
    areas = dict.fromkeys(STATISTICS, 0.02) | {"entropy": 0.01}
    kept = {"aurc": areas, "risk": 0.05, "coverage": 0.5, "held": True}
    for name, rejection in {"trec-psgld": kept, "trec-psgld.seed1": {"aurc": areas, "refused": "too few"}}.items():
        content = {"temperature": 0.1, "recipe": {"run": {}}, "samples": 1, "minutes": 1.0, "chosen": {"test": 8.0},
                   "rejection": rejection, "valid": {"each": [scores]},
                   "test": {"single": scores, "averaged": scores | {"nll": 0.2}, "each": [scores]}}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    runs = load(tmp_path, TARGETS["sentences"])["trec-psgld"]
    assert ours(runs, "chosen", "error").mean == 8
    assert ours(runs, "chosen", "nll") is None  # it was not chosen by that
    text = page(tmp_path)
    assert "| `trec-psgld` | average | 0.200 ± 0.000 | 0.100 ± 0.000 | 0.050 ± 0.000 |" in text
    assert "| `trec-psgld` | dropout, 20 masks |" not in text
    assert "| 20.0 | **10.0** | 20.0 | 20.0 | 1 of 2 | 0.50 | 1 of 1 |" in text
    for name in ("trec", "all"):
        assert f"| {name} | 2.00 | 1.00 | 2.00 | 2.00 | 1 of 2 | 1 of 1 |" in text


def test_statistics_are_compared_by_the_ratio_of_their_areas(tmp_path):
    """A set with four times the area weighs as much as the other; one without errors does not
    weigh."""
    for name, areas in {"mr-psgld": (0.4, 0.1), "trec-psgld": (0.01, 0.04), "cr-psgld": (0.0, 0.0)}.items():
        one = dict(zip(STATISTICS, (*areas, *areas), strict=True))
        content = result(9.0, 8.0, 7.0) | {"rejection": {"aurc": one, "refused": "too few"}}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    target = TARGETS["sentences"]
    told = {row["set"]: list(row["excess"].values())[:2] for row in rejection_summary(target, load(tmp_path, target))}
    assert told["mr"] == [pytest.approx(4), 1]
    assert told["trec"] == [1, pytest.approx(4)]
    assert told["cr"] == [None, None]
    assert told["all"] == [pytest.approx(2), pytest.approx(2)]


def test_records_in_fractions_read_as_those_in_per_cent(tmp_path):
    scores = {"nll": 0.5, "error": 0.25, "brier": 0.3, "ece": 0.1, "items": 8}
    split = {"last": scores, "averaged": scores, "each": [{"step": 3, "chain": 0, **scores}],
             "curve": {"forward": [0.25]}}
    record = {"format": 2, "chosen": {"score": "error", "valid": 0.25, "test": 0.125}, "seconds": 120.0,
              "valid": split, "test": split, "temperature": 1.0, "recipe": {}, "samples": 1}
    (tmp_path / "x.json").write_text(json.dumps(record))
    read = read_result(tmp_path / "x.json", OF_A_RUN)
    assert read["minutes"] == 2.0
    assert (read["chosen"]["valid"], read["chosen"]["test"]) == (25.0, 12.5)
    assert value_of(read, "single", "error") == value_of(read, "best", "error") == 25.0
    assert value_of(read, "averaged", "nll") == 0.5
    assert read["test"]["curve"]["forward"] == [25.0]
