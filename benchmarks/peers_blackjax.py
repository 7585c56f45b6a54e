"""blackjax: SGLD on the same network written for JAX, one jitted step. Runs in the peers'
environment.

In its favour: a flat prior (ours has a Gaussian one), a gradient of the whole batch instead of
blackjax's `vmap` over rows, inputs of all time steps multiplied at once before the scan, the old
weights' memory given to the new ones, and two random generators of which the faster one counts.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import blackjax
import jax
import jax.numpy as jnp

from .shapes import BATCHES, NUM_DATA, Shape
from .timing import Turn
from .worker import serve

Weights = dict[str, Any]


def first_weights(shape: Shape, key: Any) -> Weights:
    bound, gates = shape.hidden**-0.5, 4 * shape.hidden
    sizes = {"embedding": (shape.vocabulary, shape.hidden)}
    for layer in range(shape.layers):
        sizes |= {f"input{layer}": (shape.hidden, gates), f"recurrent{layer}": (shape.hidden, gates)}
        sizes |= {f"bias{layer}": (gates,)}
    sizes |= {"output": (shape.hidden, shape.vocabulary), "output_bias": (shape.vocabulary,)}
    keys = jax.random.split(key, len(sizes))
    return {
        name: jax.random.uniform(k, size, minval=-bound, maxval=bound)
        for k, (name, size) in zip(keys, sizes.items(), strict=True)
    }


def log_likelihood(weights: Weights, tokens: Any, layers: int) -> Any:
    """NUM_DATA × the mean over tokens, which stands for the whole training set."""
    x = weights["embedding"][tokens[:, :-1].T]  # time first, for the scan
    for layer in range(layers):
        x = lstm(x, weights[f"input{layer}"], weights[f"recurrent{layer}"], weights[f"bias{layer}"])
    log_p = jax.nn.log_softmax(x @ weights["output"] + weights["output_bias"])
    return NUM_DATA * jnp.take_along_axis(log_p, tokens[:, 1:].T[:, :, None], axis=2).mean()


def lstm(x: Any, from_input: Any, recurrent: Any, bias: Any) -> Any:
    def cell(state: Any, projected: Any) -> Any:
        hidden, memory = state
        i, f, g, o = jnp.split(projected + hidden @ recurrent, 4, axis=1)
        memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
        return (hidden, memory), hidden

    zeros = jnp.zeros((x.shape[1], recurrent.shape[0]))
    return jax.lax.scan(cell, (zeros, zeros), x @ from_input + bias)[1]


def contender(generator: str, shape: Shape) -> Turn:
    key = jax.random.key(0, impl=generator)
    weights = first_weights(shape, jax.random.key(0))
    size = (BATCHES, shape.rows, shape.time + 1)
    data = list(jax.random.randint(jax.random.key(1), size, 0, shape.vocabulary))
    sgld = blackjax.sgld(jax.grad(partial(log_likelihood, layers=shape.layers)))

    @partial(jax.jit, donate_argnums=1)
    def step(key: Any, weights: Weights, tokens: Any) -> tuple[Any, Weights]:
        key, own = jax.random.split(key)
        return key, sgld.step(own, weights, tokens, 1e-2 / NUM_DATA)

    number = 0

    def run(steps: int) -> float:
        nonlocal weights, key, number
        began = time.perf_counter()
        for _ in range(steps):
            key, weights = step(key, weights, data[number % len(data)])
            number += 1
        jax.block_until_ready(weights)
        return time.perf_counter() - began

    return run


if __name__ == "__main__":
    builders = {
        "blackjax SGLD": partial(contender, "threefry2x32"),
        "blackjax SGLD, rbg": partial(contender, "unsafe_rbg"),
    }
    serve(builders, ["blackjax", "jax"])
