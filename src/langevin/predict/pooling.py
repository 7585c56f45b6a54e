"""What foresees texts, pooled by hand: posteriors, counts and readers over the same tokens."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..models.counts import Counts
from ..models.reader import Reader
from ..posterior.mixture import FEWEST, fit_weights
from ..posterior.pool import Member, Pool, refuse_other_tokens
from .base import Posterior
from .language import LanguagePosterior

Poolable = LanguagePosterior | Counts | Reader
log = logging.getLogger(__name__)


def pool(
    members: Sequence[Poolable] | Mapping[str, Poolable], weights: Sequence[float] | None = None, *,
    text: str | Tensor | None = None, adapt: bool = False,
) -> Pool:  # fmt: skip
    """p̄ = Σ_m w_m·p_m as one reader: `score` and `next` of it, or whatever takes a reader.

    Without `weights` they are those under which a held-out `text` (or its tokens) is most probable;
    without that, equal. With `adapt` members count on and all weights follow what is read.
    """
    named = dict(members) if isinstance(members, Mapping) else number_names(members)
    refuse_other_vocabularies(named)
    if weights is not None and len(weights) != len(named):
        raise LangevinError(f"expected a weight for each of {len(named)} members, got "
                            f"{len(weights)}; leave them out for equal ones")
    if weights is None:
        weights = [1.0] * len(named) if text is None else weights_by(named, text)
    parts = [
        part for (name, member), weight in zip(named.items(), weights, strict=True)
        for part in parts_of(name, member, weight, adapt)
    ]  # fmt: skip
    return Pool(parts, adapt=adapt)


def number_names(members: Sequence[Poolable]) -> dict[str, Poolable]:
    """Members under the names of their runs, or numbers where these say nothing."""
    names = [member.path.name if isinstance(member, LanguagePosterior) else type(member).__name__
             for member in members]
    return {name if names.count(name) == 1 else f"{name} {number}": member
            for number, (name, member) in enumerate(zip(names, members, strict=True), 1)}


def parts_of(name: str, member: Poolable, weight: float, adapt: bool) -> list[Member]:
    """A posterior with counts is several; its weight is shared as validation shared it."""
    if isinstance(member, LanguagePosterior):
        inner = member.members(adapt)
        total = sum(part.weight for part in inner)
        return [Member(name if len(inner) == 1 else f"{name}: {part.name}", part.reader,
                       weight * part.weight / total) for part in inner]
    reader = member.reader(adapt=adapt) if isinstance(member, Counts) else member
    return [Member(name, reader, weight)]


def weights_by(named: Mapping[str, Poolable], text: str | Tensor) -> list[float]:
    """The weights under which a held-out text is most probable."""
    tokens = spell_for(named, text) if isinstance(text, str) else text
    each = [Pool(parts_of(name, member, 1.0, False)).score(tokens[None])[0]
            for name, member in named.items()]
    if len(tokens) < FEWEST:
        log.warning("equal weights, as %d tokens tell too little; %d do", len(tokens), FEWEST)
    found: list[float] = fit_weights(torch.stack(each)).tolist()
    return found


def spell_for(named: Mapping[str, Poolable], text: str) -> Tensor:
    vocabulary = next((member.vocabulary for member in named.values()
                       if isinstance(member, LanguagePosterior)), None)
    if vocabulary is None:
        raise LangevinError("expected the tokens of the text, as no member knows a vocabulary, got "
                            "a string; pass a tensor")
    return vocabulary.spell(text).tokens[1:]


def refuse_other_vocabularies(named: Mapping[str, Poolable]) -> None:
    """Members over different tokens do not foresee the same items."""
    sizes, first = dict[str, int](), dict[str, Vocabulary]()
    for name, member in named.items():
        if isinstance(member, Posterior) and not isinstance(member, LanguagePosterior):
            raise LangevinError(f"expected what foresees texts to pool, got the {member.noun} "
                                f"{name}; members of classifiers are joined in training")
        if isinstance(member, LanguagePosterior):
            first = first or {name: member.vocabulary}
            (other, known), own = next(iter(first.items())), member.vocabulary
            if (own.level, own.tokens) != (known.level, known.tokens):
                raise LangevinError(f"expected members over the same tokens, got {name} over "
                                    f"{len(own)} {own.level}s and {other} over {len(known)} "
                                    f"{known.level}s that differ; pool what was trained with one "
                                    f"vocabulary")
            sizes[name] = len(own)
        elif isinstance(member, Counts):
            sizes[name] = member.vocabulary
        else:
            sizes[name] = member.foresee().shape[-1]
    refuse_other_tokens(list(sizes), list(sizes.values()))
