"""Curves by hand, the binomial against scipy, and the promise kept over hundreds of simulated validation sets."""

import contextlib
import json
import math
import re

import pytest
import torch
from scipy.stats import beta, binom

from langevin import LangevinError
from langevin.posterior.risk import (
    COVERAGES,
    DecisionRule,
    best_statistic,
    binomial_cdf,
    learn_threshold,
    risk_coverage,
    risk_upper_bound,
    threshold_at_cost,
    threshold_at_coverage,
)
from langevin.posterior.streaming import predictive
from langevin.posterior.uncertainty import STATISTICS, uncertainty_score

SCORES = torch.tensor([0.4, 0.1, 0.2, 0.2, 0.3])
CORRECT = torch.tensor([False, True, True, False, True])


def test_risk_coverage_by_hand():
    """0.1 right; then both of 0.2, one wrong; then 0.3 right; then 0.4 wrong."""
    curve = risk_coverage(SCORES, CORRECT)
    assert curve.coverage.tolist() == pytest.approx([1 / 5, 3 / 5, 4 / 5, 1])
    assert curve.risk.tolist() == pytest.approx([0, 1 / 3, 1 / 4, 2 / 5])
    assert curve.score.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert curve.aurc == pytest.approx((1 * 0 + 2 / 3 + 1 / 4 + 2 / 5) / 5)


def test_aurc_without_ties_is_the_mean_risk_of_the_first_k():
    g = torch.Generator().manual_seed(0)
    scores, correct = torch.rand(200, generator=g), torch.rand(200, generator=g) < 0.8
    wrong = (~correct[scores.argsort()]).double()
    expected = float((wrong.cumsum(0) / torch.arange(1, 201)).mean())
    assert risk_coverage(scores, correct).aurc == pytest.approx(expected)
    assert risk_coverage(torch.ones(200), correct).aurc == pytest.approx(float(wrong.mean()))


@pytest.mark.parametrize(("trials", "p"), [(1, 0.5), (59, 0.05), (400, 0.02), (80_000, 0.3), (500, 1e-9)])
def test_binomial_against_scipy(trials, p):
    for successes in {0, 1, trials // 50, int(trials * p), trials // 3, trials - 1, trials}:
        expected = binom.cdf(successes, trials, p)
        assert binomial_cdf(successes, trials, p) == pytest.approx(expected, rel=1e-8, abs=1e-300)


@pytest.mark.parametrize(("errors", "trials", "delta"), [(0, 59, 0.05), (3, 100, 0.005), (40, 400, 1e-6), (7, 8, 0.05)])
def test_upper_bound_against_the_beta_quantile(errors, trials, delta):
    assert risk_upper_bound(errors, trials, delta) == pytest.approx(beta.ppf(1 - delta, errors + 1, trials - errors))
    assert risk_upper_bound(trials, trials, delta) == 1


@pytest.fixture
def grid_of(monkeypatch):
    """Other coverages to try than the usual ten, so that the numbers can be told by hand."""
    return lambda *coverages: monkeypatch.setattr("langevin.posterior.risk.COVERAGES", coverages)


def test_a_threshold_by_hand(grid_of):
    """200 items, no errors among the first 160, only errors after. δ = 0.05/2 for the two coverages 0.4 and 0.8.

    0.95^160 = 0.00027 ≤ δ passes at 0.8; the threshold is the 161st score, and strictly below it lie 160.
    """
    scores = torch.arange(200) / 200
    grid_of(0.4, 0.8)
    rule = learn_threshold(scores, torch.arange(200) < 160, risk=0.05)
    assert rule.threshold == pytest.approx(0.8)
    assert (rule.accepted, rule.errors, rule.coverage, rule.risk) == (160, 0, 0.8, 0)
    assert rule.risk_bound == pytest.approx(1 - 0.025 ** (1 / 160))
    assert int(rule.decide(scores).sum()) == 160
    assert rule.decide(torch.tensor([0.1, 0.8, math.nan])).tolist() == [True, False, False]


def test_all_answers_are_accepted_when_all_are_good():
    rule = learn_threshold(torch.rand(300), torch.ones(300, dtype=torch.bool))
    assert rule.threshold == math.inf
    assert bool(rule.decide(torch.tensor([1e9])))


def test_ties_are_accepted_or_refused_together(grid_of):
    """550 items have score 0, the others 1 and all the errors. Ranks 600 to 900 lie inside the second tie: cut below.

    Ranks 100 to 500 lie inside the first: nothing is strictly below, nothing can be promised there.
    """
    scores = torch.cat([torch.zeros(550), torch.ones(450)])
    correct = torch.cat([torch.ones(550), torch.arange(450) % 2]).bool()
    rule = learn_threshold(scores, correct)
    assert (rule.threshold, rule.accepted, rule.errors) == (1, 550, 0)
    grid_of(0.3, 0.5)
    with pytest.raises(LangevinError, match=r"least that can is 1\.0000"):
        learn_threshold(scores, correct)


def test_an_unreachable_risk_names_what_can_be_reached(grid_of):
    """One coverage of 100 items without error: the bound is 1 − 0.05^(1/100) = 0.0295."""
    scores, correct = torch.arange(200) / 200, torch.arange(200) < 100
    grid_of(0.5)
    with pytest.raises(LangevinError, match=r"the least that can is 0\.0296, at coverage 0\.500 \(0 errors in 100\)"):
        learn_threshold(scores, correct, risk=0.01)
    assert learn_threshold(scores, correct, risk=0.0296).accepted == 100


@pytest.mark.parametrize("seed", range(10))
def test_the_risk_that_is_named_can_be_promised(seed):
    g = torch.Generator().manual_seed(seed)
    scores = torch.rand(300, generator=g)
    correct = torch.rand(300, generator=g) > 0.3 * scores
    with pytest.raises(LangevinError, match="the least that can is") as refused:
        learn_threshold(scores, correct, risk=0.001)
    least = float(re.search(r"the least that can is ([\d.]+),", str(refused.value))[1])
    assert learn_threshold(scores, correct, risk=least).value == least


def rising(u):
    return 0.6 * u**2


def falling_then_rising(u):
    """Some of the most certain answers are wrong, so that the risk does not rise with the threshold."""
    return 0.12 * (u < 0.1) + 1.5 * (u - 0.4).clamp_min(0) ** 2


def true_risk(threshold, chance, levels):
    """Error among scores below the threshold, by fine numerical integration over the uniform score."""
    u = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    accepted = torch.floor(u * levels) / levels < threshold
    return float(chance(u)[accepted].mean())


def naive(scores, correct, risk):
    """The largest score at which the validation risk is within the target: no allowance for having looked."""
    curve = risk_coverage(scores, correct)
    good = curve.risk <= risk
    return float(curve.score[good].max()) + 1e-12 if good.any() else None


def promised(scores, correct, risk):
    try:
        return learn_threshold(scores, correct, risk=risk, confidence=0.9).threshold
    except LangevinError:
        return None


@pytest.mark.parametrize(("chance", "levels"), [(rising, 10**9), (falling_then_rising, 10**9), (rising, 25)])
def test_the_promise_holds_on_new_data(chance, levels):
    """400 validation sets of 1500; the true risk of the threshold is known, so that no test set blurs the count.

    Promised: broken in at most 10%, so in at most 40 + 3.1·6 = 58 sets in all but one of 1000 such tests at worst. The
    naive threshold breaks it far more often, so the count can fail; and the promise is no empty one: it finds a
    threshold in most sets, and answers a quarter of the items where the truth would allow a half to three quarters.
    """
    g = torch.Generator().manual_seed(5)
    risk, broken, broken_naive, found = 0.05, 0, 0, []
    for _ in range(400):
        u = torch.rand(1500, generator=g, dtype=torch.float64)
        correct = torch.rand(1500, generator=g, dtype=torch.float64) >= chance(u)
        scores = torch.floor(u * levels) / levels
        for rule in (promised, naive):
            threshold = rule(scores, correct, risk)
            bad = threshold is not None and true_risk(threshold, chance, levels) > risk
            broken, broken_naive = broken + (bad and rule is promised), broken_naive + (bad and rule is naive)
            if rule is promised and threshold is not None:
                found.append(float((scores < threshold).double().mean()))
    assert broken <= 58
    assert broken_naive >= 100
    assert len(found) >= 300
    assert sum(found) / len(found) >= 0.25


def test_looking_at_many_coverages_is_paid_for(grid_of):
    """The worst case: errors at 5.01% whatever the score, so that every threshold found breaks the promise.

    With δ at each of the ten coverages instead of δ/10 (a confidence of nearly 0 asks for that) the same count is far
    too high; with one coverage it is as high as one exact test allows, so that nothing is given away there.
    """
    g = torch.Generator().manual_seed(0)
    ways = {"promised": (0.9, COVERAGES), "undivided": (1e-9, COVERAGES), "one coverage": (0.9, (1.0,))}
    found = dict.fromkeys(ways, 0)
    for _ in range(400):
        scores, correct = torch.rand(600, generator=g), torch.rand(600, generator=g) >= 0.0501
        for name, (confidence, coverages) in ways.items():
            grid_of(*coverages)
            with contextlib.suppress(LangevinError):
                learn_threshold(scores, correct, confidence=confidence)
                found[name] += 1
    assert 4 <= found["promised"] <= 58
    assert found["undivided"] > 58
    largest = max(k for k in range(60) if binom.cdf(k, 600, 0.05) <= 0.1)
    chance = binom.cdf(largest, 600, 0.0501)
    assert abs(found["one coverage"] - 400 * chance) <= 3.9 * math.sqrt(400 * chance * (1 - chance))


def test_comparing_statistics_costs_confidence():
    scores, correct = torch.arange(1000) / 1000, torch.ones(1000, dtype=torch.bool)
    bounds = [learn_threshold(scores, correct, comparisons=n).risk_bound for n in (1, 4)]
    assert bounds == pytest.approx([1 - (0.005 / n) ** (1 / 1000) for n in (1, 4)])


def test_coverage_by_hand():
    rule = threshold_at_coverage(SCORES, CORRECT, coverage=0.6)
    assert rule.threshold == pytest.approx(0.3)
    assert (rule.accepted, rule.errors, rule.coverage) == (3, 1, 0.6)
    assert (rule.target, rule.value, rule.confidence, rule.risk_bound) == ("coverage", 0.6, None, None)
    tied = threshold_at_coverage(SCORES, CORRECT, coverage=0.3)  # two are asked for, the tie brings three
    assert tied.coverage == 0.6
    assert threshold_at_coverage(SCORES, CORRECT, coverage=1.0).threshold == math.inf
    assert threshold_at_coverage(SCORES, CORRECT, coverage=1e-12).accepted == 1
    hundred = torch.arange(100.0)
    assert threshold_at_coverage(hundred, hundred > 3, coverage=0.07).accepted == 7


def test_rules_survive_json():
    rules = [threshold_at_coverage(SCORES, CORRECT, coverage=share) for share in (0.6, 1)]
    rules.append(learn_threshold(torch.arange(300) / 7, torch.arange(300) < 299, statistic="mutual_information"))
    for rule in rules:
        text = json.dumps(rule.to_dict(), allow_nan=False)
        assert DecisionRule.from_dict(json.loads(text)) == rule
        assert json.loads(text)["coverage"] == rule.coverage
        assert "Infinity" not in text


@pytest.mark.parametrize("told", [{}, {"threshold": None}, {"threshold": "high"}])
def test_what_is_no_rule(told):
    with pytest.raises(LangevinError, match="expected a decision rule"):
        DecisionRule.from_dict(told)


def test_an_altered_rule():
    given = threshold_at_coverage(SCORES, CORRECT).to_dict()
    for change in ({"accepted": 0}, {"errors": 6}, {"target": "luck"}, {"threshold": math.nan}):
        with pytest.raises(LangevinError, match="expected"):
            DecisionRule.from_dict(given | change)


def test_the_best_statistic_is_the_one_that_ranks_errors_last():
    """Noise in the weights makes errors here: items whose samples differ are wrong, those unsure for all are right."""
    log_p = torch.tensor([
        [[0.97, 0.03], [0.55, 0.45], [0.9, 0.1], [0.56, 0.44]], [[0.2, 0.8], [0.55, 0.45], [0.9, 0.1], [0.56, 0.44]],
    ]).log()
    given = predictive(log_p)
    labels = torch.tensor([1, 0, 0, 0])
    name, areas = best_statistic(given, labels)
    assert set(areas) == set(STATISTICS)
    assert name in ("mutual_information", "standard_deviation")
    assert areas["mutual_information"] == pytest.approx(0.25 / 4)  # wrong only at full coverage
    assert areas["entropy"] > areas["mutual_information"]
    for statistic, area in areas.items():
        assert area == risk_coverage(uncertainty_score(statistic, given), given.label == labels).aurc


@pytest.mark.parametrize(("call", "message"), [
    (lambda: learn_threshold(SCORES, CORRECT, risk=0.0), "risk must be between"),
    (lambda: learn_threshold(SCORES, CORRECT, confidence=1.0), "confidence must be between"),
    (lambda: learn_threshold(SCORES, CORRECT, comparisons=0), "1 or more"),
    (lambda: learn_threshold(SCORES / 0, CORRECT), "finite"),
    (lambda: threshold_at_coverage(SCORES, CORRECT, coverage=0), "coverage must be above 0"),
    (lambda: threshold_at_coverage(SCORES / 0, CORRECT), "finite"),
    (lambda: risk_coverage(SCORES[:0], CORRECT[:0]), "per item"),
])
def test_bad_input(call, message):
    with pytest.raises(LangevinError, match=message):
        call()


def test_the_cheapest_threshold_is_that_of_trying_all():
    g = torch.Generator().manual_seed(3)
    scores = torch.rand(200, generator=g).round(decimals=2)
    correct = torch.rand(200, generator=g) > 0.6 * scores
    for cost in (1.5, 4.0, 20.0):
        rule = threshold_at_cost(scores, correct, cost=cost)
        taken = rule.decide(scores)
        assert (rule.accepted, rule.errors) == (int(taken.sum()), int((taken & ~correct).sum()))
        every = [cost * int(((scores < t) & ~correct).sum()) + int((scores >= t).sum())
                 for t in (*scores.unique().tolist(), math.inf)]
        assert cost * rule.errors + 200 - rule.accepted == pytest.approx(min(every))
        assert DecisionRule.from_dict(rule.to_dict()) == rule
    with pytest.raises(LangevinError, match="no answer is worth its risk"):
        threshold_at_cost(scores, torch.zeros(200), cost=2.0)
    for cost in (0.0, math.nan, math.inf):
        with pytest.raises(LangevinError, match="cost must be above 0"):
            threshold_at_cost(scores, correct, cost=cost)
