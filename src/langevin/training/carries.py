"""The state that batches carry on: of the rows of each piece, of all of them, and as it lies in a
checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..tasks.base import Carry
from ..tasks.shards import Shard


def join_carries(pieces: Sequence[Carry]) -> Carry:
    """The state of all rows from those of the pieces, in their order."""
    if len(pieces) == 1 or pieces[0] is None:
        return pieces[0]
    layers = zip(*pieces, strict=True)
    return [tuple(torch.cat(parts, 1) for parts in zip(*layer, strict=True)) for layer in layers]


def split_carry(carry: Carry, pieces: Sequence[Shard]) -> list[Carry]:
    """The state of the rows of each piece."""
    if carry is None or pieces[0].of == 1:
        return [carry] * len(pieces)

    def own(part: Tensor, piece: Shard) -> Tensor:
        return part[:, piece.span(part.shape[1])].clone(memory_format=torch.contiguous_format)

    return [[tuple(own(part, piece) for part in layer) for layer in carry] for piece in pieces]


def unflatten_carry(flat: dict[str, Tensor], device: torch.device) -> Carry:
    """'layer.part' → [(part, ...), ...], or None when nothing was carried."""
    layers: dict[int, list[Tensor]] = {}
    for name in sorted(flat, key=lambda n: tuple(map(int, n.split(".")))):
        layers.setdefault(int(name.split(".")[0]), []).append(flat[name].to(device))
    return [tuple(layers[number]) for number in sorted(layers)] or None
