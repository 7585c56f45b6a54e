"""What can be reproduced: each table and figure of the paper, and the training runs behind it."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field

from langevin.errors import LangevinError

from . import printed as paper
from . import questions
from .questions import Variant


@dataclass(frozen=True)
class Run:
    """One training run of one cell of a table: a recipe, and a seed or a fold."""

    cell: str
    key: str = ""
    overrides: tuple[str, ...] = ()
    chains: int = 1

    @property
    def name(self) -> str:
        """Of its folder and of its file of results."""
        return f"{self.cell}.{self.key}" if self.key else self.cell

    @property
    def recipe(self) -> str:
        """What comes before the first point is the name of a recipe; what follows says how this
        cell differs."""
        return self.cell.partition(".")[0]


@dataclass(frozen=True)
class Benchmark:
    """A measurement of time that a table shows beside its runs, by a module of the source tree."""

    module: str
    options: str
    """With places for {runs} and {precision}."""
    ratio: str
    """What the table takes of the file that it writes."""
    minutes: float
    needs: str = ""
    """The run whose folder must be there."""

    def words(self, result: str, runs: str, precision: str) -> list[str]:
        """The arguments of Python."""
        options = (word.format(runs=runs, precision=precision) for word in self.options.split())
        return ["-m", self.module, *options, "--json", result]


@dataclass(frozen=True)
class Target:
    """A table or figure and the recipes of its cells."""

    name: str
    title: str
    cells: tuple[str, ...] = ()
    paper: paper.Cells = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """(sampler, its optimiser twin): the paper's claim is that the first is better."""
    quick: tuple[str, ...] = ()
    """Overrides that make a run short; its numbers then mean nothing but that it runs."""
    folds: int = 0
    """Runs of one cell are the folds of cross-validation, so many in the paper; 0: seeds."""
    figure: bool = False
    needs_folders: bool = False
    """The samples of its runs are looked at, not only their recorded numbers."""
    benchmarks: Mapping[str, Benchmark] = field(default_factory=dict)
    """By the name of the file of results that each writes."""
    beside: tuple[str, ...] = ()
    """Files of results of other commands that the page shows with it."""
    claimed: tuple[str, ...] = ()
    """Metrics by which twins are compared besides those of the table."""
    absent: str = ""
    """Why none of it can be run here."""
    tuned: bool = False
    """A sweep of settings: the table shows the validation split first, by which they are chosen."""
    variants: Mapping[str, Variant] = field(default_factory=dict)
    """How those cells differ from their recipes that are not recipes themselves."""

    def usual_seeds(self, *, quick: bool = False) -> int:
        """Runs of each cell: as many as in the paper; of quick tables two, so that there is a
        spread."""
        return 2 if quick and not self.figure else self.folds or 1

    def runs(self, cells: tuple[str, ...] = (), seeds: int = 1, quick: bool = False) -> list[Run]:
        """The runs behind the chosen cells: names, or patterns like 'trec-*'."""
        for asked in cells:
            if not fnmatch.filter(self.cells, asked):
                raise LangevinError(f"{self.name} has no cell {asked!r}; choose from {', '.join(self.cells)}")
        short = self.quick if quick else ()
        chosen = [cell for cell in self.cells if not cells or any(fnmatch.fnmatch(cell, asked) for asked in cells)]
        return [run for cell in chosen for run in self.runs_of(cell, seeds, short)]

    def runs_of(self, cell: str, count: int, overrides: tuple[str, ...]) -> list[Run]:
        variant = self.variants.get(cell, Variant())
        overrides = (*variant.overrides, *overrides)
        if self.folds and not cell.startswith("trec"):  # TREC has a test set of its own
            return [Run(cell, f"fold{k}", (*overrides, f"fold={k}")) for k in range(count)]
        chains = variant.chains
        seeds = [("", overrides), *((f"seed{k}", (*overrides, f"seed={k * chains}")) for k in range(1, count))]
        return [Run(cell, key, changed, chains) for key, changed in seeds]


def twins(cells: tuple[str, ...], names: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Pairs (sampler, optimiser) among the cells, by how their names end."""
    found = []
    for cell in cells:
        for sampler, optimiser in names.items():
            head, dash, tail = cell.partition(f"-{sampler}")
            if dash and tail in ("", "-dropout", "-tempered"):
                twin = f"{head}-{optimiser}{tail.replace('-tempered', '')}"
                found += [(cell, twin)] if twin in cells else []
    return tuple(found)


WP_CELLS = tuple(
    f"wp-{cell}-{method}" for cell in ("lstm", "gru", "rnn") for method in ("rmsprop", "psgld", "psgld-tempered")
)
TIMES = {
    "bench-epochs-flickr8k": Benchmark(
        "benchmarks.epochs", "flickr8k-psgld flickr8k-rmsprop-dropout --rounds 2 --set precision={precision}",
        "sampler_to_optimiser", 7,
    ),
    "bench-captioning": Benchmark(
        "benchmarks.captioning", "--run {runs}/flickr8k-psgld --images 250 --rounds 2", "all_at_once_to_one_sample", 3,
        needs="flickr8k-psgld",
    ),
}
CORE = "one core (AVX2, 2.45 GHz) in float32"
"""Where the minutes were measured."""
MINUTES = {
    "wp-lstm": 46, "wp-gru": 34, "wp-rnn": 14, "ptb-small-random": 250, "ptb-small-successive": 90, "ptb-medium": 1200,
    "ptb-large": 8400, "ptb-small-successive-sgld.T": 21, "ptb-small-successive-sgld.p": 21,
    "ptb-small-successive-sgld-dropout.T": 21, "flickr8k": 53, "flickr30k": 260, "mr": 22, "subj": 22, "cr": 10,
    "mpqa": 10, "trec": 6, "classify": 3.6, "classify.mpqa": 1.5, "classify.subj": 10, "text": 35,
}
"""Of one run on CORE, by how its name begins. Measured there: TREC, PTB-small successive and
classify.mpqa. The others in bfloat16 on a faster machine, times 2.4, as the first two are; War and
Peace in float32 there, times 1.7. PTB-medium, PTB-large and Flickr30k follow from the others by
their products."""
SHORT = (
    "epochs=0.04", "burn_in=0.01", "sample_every=0.01", "cycle=0.03", "hidden=8", "max_vocab=500", "threads=1",
)

TARGETS = {
    target.name: target
    for target in (
        Target("wp", "Table 2: War and Peace, test cross-entropy in nats per byte", WP_CELLS, paper.WAR_AND_PEACE,
               ("nll",), twins(WP_CELLS, {"psgld": "rmsprop"}),
               ("parts=[8,2,2]", "epochs=1", "burn_in=0.25", "sample_every=0.25", "hidden=8", "threads=1")),
        Target("ptb", "Table 3: Penn Treebank, test perplexity", tuple(paper.PTB), paper.PTB, ("perplexity",),
               twins(tuple(paper.PTB), {"sgld": "sgd"}), (*SHORT, "embed=8")),
        Target("flickr8k", "Table 4: Flickr8k", tuple(paper.FLICKR8K), paper.FLICKR8K, paper.CAPTION_METRICS,
               twins(tuple(paper.FLICKR8K), {"psgld": "rmsprop"}), SHORT),
        Target("flickr30k", "Table 4: Flickr30k", tuple(paper.FLICKR30K), paper.FLICKR30K, paper.CAPTION_METRICS,
               twins(tuple(paper.FLICKR30K), {"psgld": "rmsprop"}), SHORT, absent="its pictures are not at hand"),
        Target("sentences", "Table 5: sentence classification, test error in %", tuple(paper.SENTENCES),
               paper.SENTENCES, ("error",), twins(tuple(paper.SENTENCES), {"psgld": "rmsprop"}),
               ("epochs=0.2", "burn_in=0.05", "sample_every=0.05", "hidden=8", "threads=1"), folds=10,
               claimed=("nll", "ece"), beside=("outside-trec",)),
        Target("ablation", "Table 6: noise and averaging, alone and together",
               ("trec-rmsprop", "trec-psgld", "ptb-small-random-sgd", "ptb-small-random-sgld"), quick=SHORT),
        Target("time", "Table 7: running time, pSGLD against RMSprop + dropout",
               ("flickr8k-rmsprop-dropout", "flickr8k-psgld"), quick=SHORT, benchmarks=TIMES),
        Target("samples", "Figure 2: each sample, and the collections by number of samples",
               ("ptb-small-random-sgld",), quick=(*SHORT, "embed=8"), figure=True),
        Target("words", "Figure 3: the words of a sentence under three samples and their average",
               ("ptb-small-successive-sgld",), quick=(*SHORT, "embed=8"), figure=True, needs_folders=True),
        Target("captions", "Figure 4: captions of one picture under two samples", ("flickr8k-psgld",), quick=SHORT,
               figure=True, needs_folders=True),
        Target("learning-curves", "Figure 5: learning curves on TREC", ("trec-rmsprop", "trec-rmsprop-dropout",
               "trec-psgld", "trec-psgld-dropout"), quick=SHORT, figure=True, needs_folders=True),
        Target("uncertainty", "Figure 6: TREC test sentences and those it is least sure of",
               ("trec-psgld-dropout.full",), quick=SHORT, figure=True, needs_folders=True,
               variants=questions.TREC_ALTERNATIVES),
        Target("temperature-trec", "How TREC depends on temperature and prior",
               (*questions.TREC_BASELINES, *questions.TREC_TEMPERATURE), metrics=("error", "nll"), quick=SHORT,
               tuned=True, variants=questions.TREC_BASELINES | questions.TREC_TEMPERATURE),
        Target("temperature-ptb", "How Penn Treebank, small, successive, depends on temperature and prior (3 epochs)",
               tuple(questions.PTB_TEMPERATURE), metrics=("perplexity",), quick=(*SHORT, "embed=8"),
               tuned=True, variants=questions.PTB_TEMPERATURE),
        Target("alternatives-trec", "TREC: what else a user could do at the same price of training",
               tuple(questions.TREC_ALTERNATIVES), metrics=("error", "nll", "ece"), quick=SHORT,
               variants=questions.TREC_ALTERNATIVES),
        Target("alternatives-ptb", "Penn Treebank, small: what else a user could do at the same price of training",
               (*(f"ptb-small-successive-{method}" for method in paper.FOUR), *questions.PTB_ALTERNATIVES),
               metrics=("perplexity",), quick=(*SHORT, "embed=8"), variants=questions.PTB_ALTERNATIVES),
        Target("cycles", "A text of one's own by words (War and Peace): a constant rate or cycles, test perplexity",
               tuple(questions.OWN_TEXT), metrics=("perplexity",), quick=(*SHORT, "embed=8"),
               variants=questions.OWN_TEXT),
        Target("noise", "Noise or prior: the sampler, and the same prior without noise, test perplexity",
               tuple(cell for name in questions.NOISE for cell in (name.removesuffix(".T0"), name)),
               metrics=("perplexity",), quick=(*SHORT, "embed=8"), variants=questions.NOISE,
               pairs=tuple((name.removesuffix(".T0"), name) for name in questions.NOISE)),
        Target("chains", "One long chain or four short ones at the same price, test nll",
               ("wp-rnn-psgld-tempered", *questions.CHAINS), metrics=("nll",), quick=SHORT,
               variants=questions.CHAINS),
        Target("own-sentences", "Labelled sentences of one's own: defaults and other settings, error in %, nll, ece",
               tuple(questions.OWN_SENTENCES), metrics=("error", "nll", "ece"), quick=SHORT, tuned=True,
               variants=questions.OWN_SENTENCES, pairs=questions.OWN_TWINS),
        Target("vectors", "Word vectors of higher coverage: spaCy's instead of word2vec, test error in % and nll",
               tuple(cell for name in questions.VECTORS for cell in (name.removesuffix(".spacy"), name)),
               metrics=("error", "nll"), quick=SHORT, folds=10, tuned=True, variants=questions.VECTORS),
    )
}


def minutes_of(cell: str) -> float:
    return MINUTES[max((begin for begin in MINUTES if cell.startswith(begin)), key=len)]


def target_named(name: str) -> Target:
    if name not in TARGETS:
        raise LangevinError(f"no target {name!r}; choose from {', '.join(TARGETS)}")
    return TARGETS[name]
