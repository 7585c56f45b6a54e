"""Questions that the paper did not ask, as cells beside its own: recipes with a few settings
changed.

How much the gain depends on temperature and prior, what a user would pick instead at the same
price, and whether one long chain or several short ones are better.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """A recipe changed in a few settings; several chains are short runs from different seeds,
    averaged together."""

    overrides: tuple[str, ...] = ()
    chains: int = 1


Variants = dict[str, Variant]
"""By the name of the cell: the recipe, a point, and how it differs."""

TEMPERATURES = {"T1": "1", "T0.1": "0.1", "T0.01": "0.01", "T0.001": "0.001", "T2overN": "2/N", "T0": "0"}


def by_temperature(recipe: str, *overrides: str, without: str = "") -> Variants:
    """From the printed temperature down to that of the authors' released code, and none at all.

    `without` one that another cell of the same table has: the recipe's own, where its prior is
    varied, too.
    """
    return {
        f"{recipe}.{name}": Variant((f"temperature={value}", *overrides))
        for name, value in TEMPERATURES.items() if name != without
    }


def by_prior(recipe: str, variances: tuple[str, ...], *overrides: str) -> Variants:
    """The recipe's own temperature under a wider prior, its own, and a narrower one."""
    return {f"{recipe}.prior{value}": Variant((f"prior_var={value}", *overrides)) for value in variances}


TO_THE_END = "patience=none"
"""Without early stopping, so that all methods see the same number of batches."""
PTB_SHORT = ("epochs=3", "burn_in=1")
"""3 epochs of the 13, 4 samples, before the learning rate falls: what a sweep of many runs can
afford."""
PRIORS = ("10", "1", "0.1")

TREC_TEMPERATURE = (
    by_temperature("trec-psgld", TO_THE_END) | by_temperature("trec-psgld-dropout", TO_THE_END, without="T0.01")
    | by_prior("trec-psgld-dropout", PRIORS, TO_THE_END)
)
PTB_TEMPERATURE = (
    by_temperature("ptb-small-successive-sgld", *PTB_SHORT)
    | by_temperature("ptb-small-successive-sgld-dropout", *PTB_SHORT)
    | by_prior("ptb-small-successive-sgld", PRIORS, *PTB_SHORT)
)

TREC_ALTERNATIVES: Variants = {
    "trec-rmsprop-dropout.full": Variant((TO_THE_END,)),
    "trec-rmsprop-dropout.four": Variant((TO_THE_END, "epochs=5", "burn_in=4"), chains=4),
    "trec-psgld-dropout.full": Variant((TO_THE_END,)),
    "trec-psgld-dropout.cyclical": Variant(
        (TO_THE_END, "burn_in=0", "lr_schedule=cyclical", "cycle=5", "cycle_explore=0.6", "lr=2e-3")
    ),
    "trec-psgld-dropout.sghmc": Variant(
        (TO_THE_END, "sampler.name=sghmc", "beta=none", "eps=none", "lr=0.05", "friction=0.1")
    ),
}
PTB_CYCLES = ("burn_in=4", "lr_schedule=cyclical", "cycle=3", "cycle_explore=0.5", "cycle_floor=0.01")
PTB_ALTERNATIVES: Variants = {
    "ptb-small-successive-sgd.four": Variant(
        ("epochs=3.25", "burn_in=2.75", "decay_after=1", "decay_every=0.25"), chains=4
    ),
    "ptb-small-successive-sgd.constant": Variant(("lr_schedule=constant",)),
    "ptb-small-successive-sgld.constant": Variant(("lr_schedule=constant",)),
    "ptb-small-successive-sgld.cyclical": Variant(PTB_CYCLES),
    "ptb-small-successive-sgld.cyclical-T0": Variant((*PTB_CYCLES, "temperature=0")),
    "ptb-small-successive-sgld.sghmc": Variant(("sampler.name=sghmc", "lr=2.0", "friction=0.1")),
}

BY_WORDS = (
    "level=word", TO_THE_END, "by_size=false", "lr_schedule=constant", "sample=last", "epochs=10", "burn_in=4",
    "burn_in_temperature=0", "sample_every=0.5", "temperature=0.05", "prior_var=1.0",
)
OWN_TEXT: Variants = {
    "text.words": Variant(BY_WORDS),
    "text.words-cyclical": Variant(
        (*BY_WORDS, "lr_schedule=cyclical", "cycle=2", "cycle_explore=0.5", "cycle_floor=0.01")
    ),
}
"""What `langevin train --text FILE --level word` did when these were run, and the cycles of Penn
Treebank instead."""

TREC_BASELINES: Variants = {
    "trec-rmsprop.full": Variant((TO_THE_END,)), "trec-rmsprop-dropout.full": Variant((TO_THE_END,)),
}
WORD2VEC, SPACY = "vectors=word2vec_googlenews_300d", "vectors=spacy_en_md_300d"
"""The vectors of the recipes, which know 67 % of TREC's words, and some that know 98 %."""
VECTORS: Variants = {
    f"{name}.spacy": Variant((SPACY,))
    for name in ("trec-rmsprop-dropout", "trec-psgld-dropout", "cr-rmsprop-dropout", "cr-psgld-dropout")
}
CHAINS: Variants = {
    "wp-rnn-psgld-tempered.four": Variant(("epochs=5", "burn_in=3"), chains=4),
    "trec-psgld-dropout.full": TREC_ALTERNATIVES["trec-psgld-dropout.full"],
    "trec-psgld-dropout.four": Variant((TO_THE_END, "epochs=5", "burn_in=1"), chains=4),
}

NOISE: Variants = {
    f"{sampler}.T0": Variant(("temperature=0",)) for sampler in ("flickr8k-psgld", "ptb-small-random-sgld")
}
"""Samplers differ from their optimisers by a prior, too: these have the prior and no noise."""

RMSPROP = ("sampler.name=rmsprop", "temperature=none", "prior_var=none", "burn_in_temperature=none")


def as_a_newcomer(corpus: str) -> Variants:
    """The recipe for labelled sentences on another set: with RMSprop, and as it is."""
    settings = {"-rmsprop": RMSPROP, "": ()}
    return {f"classify.{corpus}{name}": Variant((f"corpus={corpus}", *set_)) for name, set_ in settings.items()}


OWN_SENTENCES: Variants = {
    "classify.rmsprop": Variant(RMSPROP), "classify": Variant(), "classify.prior10": Variant(("prior_var=10",)),
    "classify.T0": Variant(("temperature=0",)),
    **as_a_newcomer("cr"), "classify.cr-T0": Variant(("corpus=cr", "temperature=0")),
    **as_a_newcomer("mpqa"), **as_a_newcomer("subj"),
    "classify.vectors-rmsprop": Variant((WORD2VEC, *RMSPROP)), "classify.vectors": Variant((WORD2VEC,)),
    "classify.vectors10": Variant((WORD2VEC, "prior_var=10")),
    "classify.spacy-rmsprop": Variant((SPACY, *RMSPROP)),
    "classify.spacy-slow-rmsprop": Variant((SPACY, *RMSPROP, "lr=1e-3")),
    "classify.spacy": Variant((SPACY,)), "classify.spacy-T0": Variant((SPACY, "temperature=0")),
}
"""What a newcomer gets: the recipe for labelled sentences of one's own, and what she would get with
RMSprop (its dropout kept), other settings, or word vectors. MPQA and SUBJ had no part in setting
the recipe."""
OWN_TWINS = (
    ("classify", "classify.rmsprop"), ("classify.cr", "classify.cr-rmsprop"),
    ("classify.vectors", "classify.vectors-rmsprop"),
    ("classify.spacy", "classify.spacy-rmsprop"), ("classify.spacy", "classify.spacy-slow-rmsprop"),
    ("classify", "classify.T0"), ("classify.cr", "classify.cr-T0"), ("classify.spacy", "classify.spacy-T0"),
    ("classify.mpqa", "classify.mpqa-rmsprop"), ("classify.subj", "classify.subj-rmsprop"),
)
"""Samplers and the optimiser beside each."""

MASKS = 20
"""Of Monte-Carlo dropout, where it is recorded."""
OPTIMISER = {
    "last weights": "single", "best single weights": "best", "snapshots averaged": "averaged",
    "weights averaged (SWA)": "weight_averaged", f"Monte-Carlo dropout, {MASKS} masks": "mc_dropout",
}
"""What one run of an optimiser offers, and where its numbers are recorded."""
FOUR, CYCLES, MOMENTUM = "four short runs averaged (deep ensemble)", "cyclical", "SGHMC"
COMPARED: dict[str, list[tuple[str, str, str]]] = {
    "alternatives-trec": [
        *((f"RMSprop + dropout: {label}", "trec-rmsprop-dropout.full", which) for label, which in OPTIMISER.items()),
        (f"RMSprop + dropout: {FOUR}", "trec-rmsprop-dropout.four", "averaged"),
        ("pSGLD + dropout, averaged", "trec-psgld-dropout.full", "averaged"),
        (f"pSGLD + dropout, {CYCLES}, averaged", "trec-psgld-dropout.cyclical", "averaged"),
        (f"{MOMENTUM} + dropout, averaged", "trec-psgld-dropout.sghmc", "averaged"),
    ],
    "alternatives-ptb": [
        *((f"SGD: {label}", "ptb-small-successive-sgd", which) for label, which in list(OPTIMISER.items())[:-1]),
        (f"SGD: {FOUR}", "ptb-small-successive-sgd.four", "averaged"),
        ("SGD, constant learning rate, averaged", "ptb-small-successive-sgd.constant", "averaged"),
        *((f"SGD + dropout: {label}", "ptb-small-successive-sgd-dropout", which) for label, which in OPTIMISER.items()),
        ("SGLD, averaged", "ptb-small-successive-sgld", "averaged"),
        ("SGLD + dropout, averaged", "ptb-small-successive-sgld-dropout", "averaged"),
        ("SGLD, constant learning rate, averaged", "ptb-small-successive-sgld.constant", "averaged"),
        (f"SGLD, {CYCLES}, averaged", "ptb-small-successive-sgld.cyclical", "averaged"),
        (f"SGLD, {CYCLES}, without noise, averaged", "ptb-small-successive-sgld.cyclical-T0", "averaged"),
        (f"{MOMENTUM}, averaged", "ptb-small-successive-sgld.sghmc", "averaged"),
    ],
}
"""Lines of the tables of alternatives: what it is, the cell, and which of its numbers."""
