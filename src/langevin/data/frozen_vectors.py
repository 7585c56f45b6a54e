"""Several sets of word vectors side by side, as one table of frozen numbers."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import torch
from torch import Tensor

from .vectors import WordVectors

WIDEST = 300
"""Numbers of a word that are kept: the principal components, where the sets have more."""


def side_by_side(sets: Sequence[WordVectors], words: Sequence[str]) -> Tensor:
    """[words, numbers], float16; zeros for a word that no set has.

    Of each set the words at hand are centred and brought to a root mean square of 1; a word that
    a set lacks is at its centre. Of more than WIDEST numbers the principal components stay.
    """
    parts, known = list[Tensor](), torch.zeros(len(words), dtype=torch.bool)
    for own in sets:
        has = torch.tensor([own.find(word) is not None for word in words])
        vectors = own.embed(words)
        vectors[has] -= vectors[has].mean(0)
        spread = vectors[has].square().mean().sqrt()
        parts.append(vectors / spread.clamp(min=1e-6))
        known |= has
    table = torch.cat(parts, 1)
    if table.shape[1] > WIDEST:
        table = components(table, known)
    return (table * known[:, None]).half()


def components(table: Tensor, known: Tensor) -> Tensor:
    """The WIDEST principal components of the known rows, brought to a root mean square of 1."""
    rows = table[known].double()
    _, directions = torch.linalg.eigh(rows.T @ rows)
    turned = table.double() @ directions.flip(1)[:, :WIDEST]
    scaled: Tensor = turned / turned[known].square().mean().sqrt()
    return scaled.float()


def joint_coverage(
    sets: Sequence[WordVectors], counts: Mapping[str, int], readable: Container[str]
) -> dict[str, float]:
    """Which share of the types, and of the tokens, of a text any set has and can be read."""
    known = [word for word in counts
             if word in readable and any(own.find(word) is not None for own in sets)]
    return {"types": len(known) / max(len(counts), 1),
            "tokens": sum(counts[word] for word in known) / max(sum(counts.values()), 1)}
