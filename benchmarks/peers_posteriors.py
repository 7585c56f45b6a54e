"""posteriors (Normal Computing): SGLD and SGHMC on the same torch network. Runs in the peers'
environment.

In their favour: a flat prior (ours has a Gaussian one), and the update in place.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import posteriors
import torch
from torch.nn import functional as F

from .shapes import NUM_DATA, Shape, batches, network
from .timing import Turn
from .worker import serve


def contender(build: Any, shape: Shape) -> Turn:
    torch.manual_seed(0)
    model, data = network(shape), batches(shape)

    def log_posterior(weights: Any, batch: Any) -> tuple[Any, Any]:
        inputs, targets = batch
        logits = torch.func.functional_call(model, weights, (inputs,))
        return -F.cross_entropy(logits.flatten(0, 1), targets.flatten()), torch.tensor([])

    transform = build(log_posterior)
    state = transform.init({name: weight.detach().clone() for name, weight in model.named_parameters()})
    number = 0

    def run(steps: int) -> float:
        nonlocal state, number
        began = time.perf_counter()
        for _ in range(steps):
            state, _ = transform.update(state, data[number % len(data)], inplace=True)
            number += 1
        return time.perf_counter() - began

    return run


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    sgld = partial(posteriors.sgmcmc.sgld.build, lr=1e-2, temperature=1 / NUM_DATA)
    sghmc = partial(posteriors.sgmcmc.sghmc.build, lr=1e-2, temperature=1 / NUM_DATA)
    builders = {"posteriors SGLD": partial(contender, sgld), "posteriors SGHMC": partial(contender, sghmc)}
    serve(builders, ["posteriors", "torch"])
