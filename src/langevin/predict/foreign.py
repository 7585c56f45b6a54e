"""How foreign a text is to a language model, and where.

A text is cut into windows; the mean nll of a window is its surprise. Surprise is told as a quantile
among windows of held-out text of the run's own: it tells foreign text better than disagreement of
the samples does, which is shown beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..data.folds import check_split
from ..errors import LangevinError
from ..posterior.mixture import log_mixture, mixture
from ..posterior.pool import Pool
from ..posterior.scores import Result
from ..process import SILENT, Progress
from ..tasks.language_model import LanguageModelTask
from .language import PROBABILITIES, LanguagePosterior
from .results import Foreignness, ForeignWindow

WINDOW = {"word": 40}
"""Tokens of a window; of bytes and characters 200."""
FEWEST, SHORTEST = 20, 10
"""Held-out windows to compare with; where there is little text they are shorter, to so many tokens
at least."""
ROWS = 16
"""Places of a long text that are read side by side."""
SHOWN = (0.0, 0.05, 0.5, 0.95, 1.0)
"""Quantiles of the held-out windows that are told."""


@dataclass(frozen=True)
class Surprise(Result):
    """How much a text surprises, among windows of the run's own held-out text."""

    split: str
    window: int
    """Tokens of a held-out window."""
    quantile: float
    """Share of the held-out windows that surprise less, 0 to 1."""
    held_out: tuple[float, ...]
    """The nll of the held-out windows at the quantiles 0, .05, .5, .95, 1."""


@dataclass(frozen=True)
class Windows:
    """Means over the tokens of each window, [windows]."""

    place: Tensor
    """The number of the first token."""
    length: Tensor
    nll: Tensor
    between: Tensor
    within: Tensor

    def mean(self, values: Tensor) -> float:
        """Over all tokens."""
        return float((values * self.length).sum() / self.length.sum())


def foreign_text(
    posterior: LanguagePosterior, source: str | Path, *, split: str = "test", top: int = 5,
    tokens: int = 20_000, progress: Progress = SILENT,
) -> Foreignness:  # fmt: skip
    """Read about so many tokens of a text and compare each window with held-out ones.

    Where the run keeps the surprise of its validation windows, taken before they were counted, it
    is compared with these, and needs no data; else with those of the split.
    """
    text, _ = posterior.read_source(source)
    split, window, held_out = held_out_surprise(posterior, split, tokens, progress)
    read = read_windows(posterior.pool(), text, window, tokens, progress)
    nll = read.mean(read.nll)
    order = read.nll.argsort(descending=True, stable=True)[:top].tolist()
    return Foreignness(
        run=str(posterior.path), source=str(source), split=split, samples=len(posterior),
        window=window, tokens=int(read.length.sum()), available=len(text), nll=nll,
        quantile=below(held_out, nll),
        beyond=float((read.nll > held_out.quantile(0.95)).double().mean()),
        held_out=quantiles_of(held_out),
        unknown_share=posterior.vocabulary.unknown_share(text),
        between_members=read.mean(read.between), within_samples=read.mean(read.within),
        top=tuple(described_window(posterior, text, read, held_out, at) for at in order),
    )  # fmt: skip


def held_out_surprise(
    posterior: LanguagePosterior, split: str, tokens: int, progress: Progress
) -> tuple[str, int, Tensor]:
    """The split, the size of its windows, and the surprise of each."""
    kept = kept_surprise(posterior)
    if kept is not None:
        return kept
    task = posterior.data
    assert isinstance(task, LanguageModelTask)
    check_split(split, task.splits)
    text = torch.cat(task.evaluated[split].texts)
    window = min(WINDOW.get(posterior.vocabulary.level, 200), len(text) // FEWEST)
    if window < SHORTEST:
        raise LangevinError(f"expected {FEWEST} windows of {SHORTEST} tokens in the {split} split "
                            f"to compare with, it has {len(text)} tokens; name a longer split")
    read = read_windows(posterior.pool(), text, window, tokens, progress, disagreement=False)
    return split, window, read.nll


def kept_surprise(posterior: LanguagePosterior) -> tuple[str, int, Tensor] | None:
    """The same as the folder keeps it, with its counts; None where it keeps none."""
    record = None if posterior.beside is None else posterior.beside.record
    if record is None or not record.surprise:
        return None
    return "valid", record.window, torch.tensor(record.surprise, dtype=torch.float64)


def compare_surprise(posterior: LanguagePosterior, nll: float) -> Surprise | None:
    """Where a text with this mean nll stands among held-out windows; None where none are kept."""
    kept = kept_surprise(posterior)
    if kept is None:
        return None
    split, window, held_out = kept
    return Surprise(split, window, below(held_out, nll), quantiles_of(held_out))


def quantiles_of(held_out: Tensor) -> tuple[float, ...]:
    return tuple(held_out.quantile(torch.tensor(SHOWN, dtype=torch.float64)).tolist())


def read_windows(
    pool: Pool, text: Tensor, window: int, tokens: int, progress: Progress = SILENT, *,
    disagreement: bool = True,
) -> Windows:  # fmt: skip
    """All of a text; of a longer one than so many tokens, that many from evenly spread places.

    Without `disagreement`, which takes most of the time where there are many words, it is zero.
    """
    starts, columns = places_of(len(text), window, tokens)
    rows = torch.stack([text[start : start + columns] for start in starts])
    tell = surprise_and_disagreement if disagreement else surprise_alone
    width = PROBABILITIES // (len(starts) * sum(pool.sizes) * pool_vocabulary(pool))
    pieces = torch.split(rows.long(), max(1, width), 1)
    advance = progress.begin(len(pieces), "pieces of text")
    pool.begin(len(starts))
    each = []
    for piece in pieces:
        each.append(tell(pool, piece))
        advance()
    values = torch.cat(each, 2)
    ends = [*range(window, columns - window + 1, window), columns]
    firsts = [0, *ends[:-1]]
    means = torch.stack([values[..., a:b].mean(2) for a, b in zip(firsts, ends, strict=True)], 2)
    place = torch.tensor(starts)[:, None] + torch.tensor(firsts)
    length = (torch.tensor(ends) - torch.tensor(firsts)).expand_as(place)
    return Windows(place.flatten(), length.flatten(), *(part.flatten() for part in means))


def surprise_and_disagreement(pool: Pool, tokens: Tensor) -> Tensor:
    """−log p̄ of each token, mutual information between members and within samples, [3, rows,
    n]."""
    log_p = pool.foresee_along(tokens)
    said = mixture(log_p, pool.read_with, pool.sizes)
    observed = log_p.gather(-1, tokens.expand(len(log_p), -1, -1)[..., None])[..., 0]
    return torch.stack([-log_mixture(observed, pool.read_with), said.between, said.within])


def surprise_alone(pool: Pool, tokens: Tensor) -> Tensor:
    """The same with zeros for the mutual information."""
    nll = -pool.score(tokens)
    return torch.stack([nll, torch.zeros_like(nll), torch.zeros_like(nll)])


def places_of(length: int, window: int, tokens: int) -> tuple[list[int], int]:
    """Where to begin to read, and how far from each place."""
    if length <= max(tokens, ROWS * window):
        return [0], length
    columns = max(window, tokens // ROWS // window * window)
    return [(length - columns) * row // (ROWS - 1) for row in range(ROWS)], columns


def pool_vocabulary(pool: Pool) -> int:
    pool.begin(1)
    return pool.foresee().shape[-1]


def below(held_out: Tensor, nll: float) -> float:
    """Which share of the held-out windows surprises less."""
    return float((held_out < nll).double().mean())


def described_window(
    posterior: LanguagePosterior, text: Tensor, read: Windows, held_out: Tensor, at: int
) -> ForeignWindow:
    """One window in its text."""
    vocabulary, place = posterior.vocabulary, int(read.place[at])
    own = text[place : place + int(read.length[at])]
    lines = None if vocabulary.running else vocabulary.decode(text[:place]).count(b"\n") + 1
    return ForeignWindow(
        place=place, line=lines, text=vocabulary.decode(own).decode("utf-8", "replace"),
        nll=float(read.nll[at]), quantile=below(held_out, float(read.nll[at])),
        mutual_information=float(read.between[at] + read.within[at]),
        unknown_share=vocabulary.unknown_share(own),
    )  # fmt: skip
