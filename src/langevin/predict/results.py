"""What the door answers: frozen records. Probabilities and shares are 0..1, entropies nats.

`to_dict()` is what commands print with --json. Tuples there are lists; what is absent is null.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..posterior.scores import ComparedScores, Result, SampleScores, Scores
from ..tasks.base import UncertainItem


@dataclass(frozen=True)
class TokenScore(Result):
    """A token of a text: the probability that it was given, and how sure the samples were there."""

    token: str
    """As it is shown; a byte that is only a part of a letter as its number, \\xc3."""
    p: float
    """Its averaged probability."""
    std: float
    """Of that over the parts, n−1; zero for one."""
    entropy: float
    """H[p̄] of all that could have come here."""
    mutual_information: float
    """As much of the entropy as the parts disagree about."""
    between_members: float
    """Of that what the members of the pool disagree about; the rest is within the samples."""
    parts: tuple[float, ...] = ()
    """Its probability by each part: a sample, or another member of a pool."""
    word: str | None = None
    """What stood in the text where the token is <unk>."""


@dataclass(frozen=True)
class TextScore(Result):
    """How well a text was foreseen, token by token, from the level's start on."""

    nll: float
    perplexity: float
    unknown_share: float
    samples: int
    tokens: tuple[TokenScore, ...]
    labels: tuple[str, ...]
    """What each part of a token's probability is, such as "step 400"."""
    bits_per_byte: float | None = None
    """None where tokens cannot be turned back into the bytes."""


@dataclass(frozen=True)
class MeasuredText(Result):
    """A text or a file, and its score as a whole."""

    source: str
    """The text, or the name of the file."""
    scores: Scores
    adapted: bool
    """Whether the model learnt from the text while it read."""


@dataclass(frozen=True)
class Continuation(Result):
    """What was written after a prompt."""

    prompt: str
    text: str
    samples: int
    softmax_temperature: float
    seed: int


@dataclass(frozen=True)
class Prediction(Result):
    """The class of a text, the averaged probability of every class, and how sure that is."""

    label: str
    p: dict[str, float]
    std: dict[str, float]
    entropy: float
    mutual_information: float
    accepted: bool | None = None
    """By the rule that `decide` learnt; None where there is none."""
    empty: bool = False
    """No word at all: the answer is the shares of the classes in training."""
    cut: bool = False
    """Longer than the run's `max_words`; what follows was not read."""
    text: str | None = None
    labels: tuple[str, ...] | None = None
    """The set that holds the true class as often as `sets` promised; None where none was learnt."""


@dataclass(frozen=True)
class WordScore(Result):
    """A word of a caption."""

    word: str
    p: float
    std: float


@dataclass(frozen=True)
class Caption(Result):
    """A caption with its probability and the spread of that over the samples."""

    caption: str
    log_p: float
    """Σ log of the averaged probabilities of the words: what the search maximises."""
    score: float
    """The same, over its length to the power that was asked for."""
    log_p_std: float
    """Spread over the samples of log p(caption | image, θ_s)."""
    log_p_parts: tuple[float, ...]
    words: tuple[WordScore, ...]


@dataclass(frozen=True)
class SampleCaption(Result):
    """What one sample alone would write."""

    chain: int
    step: int
    caption: str
    log_p: float
    score: float


@dataclass(frozen=True)
class PictureCaptions(Result):
    """The captions of a picture, best first, and those of single samples."""

    image: str
    captions: tuple[Caption, ...]
    per_sample: tuple[SampleCaption, ...] = ()


@dataclass(frozen=True)
class ModelScores(Result):
    """A model beside the samples: the mean of their weights, a student."""

    model: str
    scores: Scores
    passes: int
    """Forward passes for each item."""
    seconds: float | None = None
    """For one item, every class included: the median batch's."""
    gap_closed: float | None = None
    """Of the distance in nll from the mean single sample, 0, to the average, 1."""


@dataclass(frozen=True)
class CaptionMetrics(Result):
    """How near captions found by beam search come to those that people wrote, by COCO's metrics."""

    last: dict[str, float]
    averaged: dict[str, float]
    files: dict[str, str]
    """Where the captions of each lie."""
    beam: int
    length_power: float
    max_length: int
    tokenizer: str
    notes: tuple[str, ...] = ()
    """What must be known of the numbers."""


@dataclass(frozen=True)
class Evaluation(Result):
    """Scores on a split: of the last sample, of the best single one, of the average."""

    task: str
    run: str
    split: str
    unit: str
    """What an item is: token, word or sentence."""
    score: str
    """The number that validation watches."""
    how: str
    """Which samples were averaged: a collection, or "best"."""
    why: str
    """The same in words."""
    samples: int
    temperature: float | None
    last: Scores
    averaged: Scores
    best_single: Scores | None = None
    """The one sample that validation scored best; None where validation is not known."""
    pooled: Scores | None = None
    adapted: Scores | None = None
    members: dict[str, Scores] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    """Of the members of the pool, by validation."""
    compared: tuple[ComparedScores, ...] = ()
    """One network, the members, the pool, each with its gain over that network."""
    verdict: str | None = None
    """Which of them is better, and by how much, in one sentence."""
    gain: float | None = None
    """nll of the best single sample less that of the average: above 0, averaging helped."""
    gain_error: float | None = None
    """Standard error of the gain, paired over items; of a text over blocks of it."""
    gain_over_last: float | None = None
    gain_over_last_error: float | None = None
    each: tuple[SampleScores, ...] = ()
    chains: tuple[SampleScores, ...] = ()
    """The average within each chain, where there are several."""
    curve: dict[str, tuple[float, ...]] | None = None
    """The score of each collection of 1, 2, … samples."""
    models: tuple[ModelScores, ...] = ()
    masks: int | None = None
    """Of Monte-Carlo dropout, averaged instead of samples."""
    steps: int = 0
    seconds: float = 0.0
    """What the samples cost to draw, summed over the chains."""
    finished: bool = True
    """False where the run was interrupted and can be resumed."""
    captions: CaptionMetrics | None = None
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Uncertainty(Result):
    """Means over the items of a split, and the items of which the run is least sure."""

    task: str
    run: str
    split: str
    unit: str
    samples: int
    items: int
    available: int
    """Items of the whole split."""
    by: str
    """The statistic that ranks them."""
    entropy: float
    aleatoric: float
    """What would remain if the weights were known: entropy = aleatoric + mutual_information."""
    mutual_information: float
    disagreement: float
    """Share of the samples whose own answer is another than the average's."""
    last: Scores
    averaged: Scores
    top: tuple[UncertainItem, ...] = ()
    """The most uncertain items; of a captioner captions."""
    unknown_share: float | None = None
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class ForeignWindow(Result):
    """A piece of a text, and how much it surprises."""

    place: int
    """How many tokens stand before it."""
    line: int | None
    """In which line of the text it begins; None of words that know no lines."""
    text: str
    nll: float
    quantile: float
    """Share of the held-out windows that surprise less, 0 to 1."""
    mutual_information: float
    unknown_share: float


@dataclass(frozen=True)
class Foreignness(Result):
    """How foreign a text is: its surprise among windows of the run's own held-out text."""

    run: str
    source: str
    split: str
    """Of the held-out windows."""
    samples: int
    window: int
    """Tokens of a window."""
    tokens: int
    """Those that were read."""
    available: int
    """Those of the whole text."""
    nll: float
    quantile: float
    """Share of the held-out windows that surprise less than this text as a whole, 0 to 1."""
    beyond: float
    """Share of its windows that surprise more than 95 % of the held-out ones: .05 is at home."""
    held_out: tuple[float, ...]
    """The nll of the held-out windows at the quantiles 0, .05, .5, .95, 1."""
    unknown_share: float
    between_members: float
    """Mutual information of a token: what the members of the pool disagree about, nats."""
    within_samples: float
    """And what the samples of the members do."""
    top: tuple[ForeignWindow, ...] = ()
    """The windows that surprise most."""
