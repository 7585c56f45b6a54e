"""One line is swapped: RMSprop for PSGLD, on scikit-learn's handwritten digits.

Three arms train the same network for the same number of steps under the same schedule: RMSprop,
RMSprop with weight decay, and PSGLD at temperature 0 with a Gaussian prior, whose samples are
running means of the weights and whose predictions are averaged. Each arm chooses among the same
number of settings by the validation nll of what it predicts with, on runs of their own; the chosen
setting is then trained anew from other seeds, and the test images are looked at once.

    python examples/swap.py           # ten seeds, one to three minutes
    python examples/swap.py --quick   # five seeds, fewer trials, under a minute
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import langevin
from langevin.posterior.calibration import calibration_metrics

STEPS, BATCH, TEST, VALID = 1000, 32, 800, 200
METRICS = ("error", "nll", "ece")
RATES = (1e-3, 3e-3, 6e-3)


@dataclass(frozen=True)
class Setting:
    """Of one trial; `strength` is the weight decay, or the variance of the prior."""

    lr: float
    strength: float


ARMS = {
    "RMSprop": [Setting(lr, 0.0) for lr in (5e-4, 1e-3, 2e-3, 3e-3, 4e-3, 6e-3, 8e-3, 1e-2, 2e-2)],
    "RMSprop, weight decay": [Setting(lr, w) for lr in RATES for w in (1e-4, 3e-4, 1e-3)],
    "PSGLD": [Setting(lr, variance) for lr in RATES for variance in (10.0, 3.0, 1.0)],
}
"""Nine trials for each arm."""

images, numbers = load_digits(return_X_y=True)
order = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(0))
inputs = torch.tensor(images / 16, dtype=torch.float32)[order]
labels = torch.tensor(numbers)[order]
test_inputs, test_labels = inputs[:TEST], labels[:TEST]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def rate(step: int) -> float:
    """Full for half of the steps, then down to .3 in a line."""
    return 1.0 if step < STEPS / 2 else 1 - 1.4 * (step / STEPS - 0.5)


def train(arm: str, setting: Setting, x: Tensor, y: Tensor, seed: int, folder: str) -> nn.Module:
    """One run; that of PSGLD also leaves ten samples in the folder."""
    torch.manual_seed(seed)
    model = network()
    if arm == "PSGLD":
        optimiser: torch.optim.Optimizer = langevin.PSGLD(  # the line that was swapped
            model.parameters(), lr=setting.lr, num_data=len(y), prior_var=setting.strength,
            temperature=0.0,
        )  # fmt: skip
    else:
        optimiser = torch.optim.RMSprop(
            model.parameters(), lr=setting.lr, weight_decay=setting.strength
        )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    mean = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))  # of some 100 steps
    store = langevin.SampleStore(folder)
    for step in range(1, STEPS + 1):
        batch = torch.randint(len(y), (BATCH,))
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
        optimiser.step()
        schedule.step()
        if arm == "PSGLD":
            mean.update_parameters(model)
            if step > STEPS / 2 and step % (STEPS // 20) == 0:
                store.append(mean.module, step)
    return model


def predict(arm: str, setting: Setting, seed: int) -> tuple[dict[str, float], dict[str, float]]:
    """Scores on validation and test images of one run."""
    rest = torch.randperm(len(labels) - TEST, generator=torch.Generator().manual_seed(seed)) + TEST
    valid, fit = rest[:VALID], rest[VALID:]
    with tempfile.TemporaryDirectory() as folder:
        model = train(arm, setting, inputs[fit], labels[fit], seed, folder)
        seen = torch.cat([inputs[valid], test_inputs])
        if arm == "PSGLD":
            averaged = langevin.average(folder, model, lambda member: member(seen))
            log_probs = averaged.probabilities.log()
        else:
            with torch.no_grad():
                log_probs = model(seen).log_softmax(-1)
    return (calibration_metrics(log_probs[:VALID], labels[valid]),
            calibration_metrics(log_probs[VALID:], test_labels))  # fmt: skip


def chosen(arm: str, trials: Sequence[Setting], seeds: Sequence[int]) -> Setting:
    """That of the least validation nll."""

    def score(setting: Setting) -> float:
        return sum(predict(arm, setting, seed)[0]["nll"] for seed in seeds)

    return min(trials, key=score)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    numbers = torch.tensor(values, dtype=torch.float64)
    return float(numbers.mean()), float(numbers.std()) / math.sqrt(len(values))


def main(quick: bool) -> None:
    seeds, tuning = (range(5), range(100, 101)) if quick else (range(10), range(100, 103))
    tests: dict[str, list[dict[str, float]]] = {}
    print(f"{'test, mean ± standard error':32} {'error':>17} {'nll':>17} {'ece':>17}   lr, decay | variance")
    for arm, settings in ARMS.items():
        setting = chosen(arm, settings[::2] if quick else settings, tuning)
        tests[arm] = [predict(arm, setting, seed)[1] for seed in seeds]
        values = [mean_and_error([scores[name] for scores in tests[arm]]) for name in METRICS]
        shown = " ".join(f"{mean:8.4f} ± {error:.4f}" for mean, error in values)
        print(f"{arm:32} {shown}   {setting.lr:g} {setting.strength:g}")
    for arm in list(ARMS)[:-1]:
        pairs = list(zip(tests["PSGLD"], tests[arm], strict=True))
        gaps = [mean_and_error([ours[name] - theirs[name] for ours, theirs in pairs])
                for name in METRICS]  # fmt: skip
        shown = " ".join(f"{mean:+8.4f} ± {error:.4f}" for mean, error in gaps)
        print(f"{'PSGLD less ' + arm:32} {shown}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main("--quick" in sys.argv[1:])
