"""Sentences and captions → words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .vocabulary import Vocabulary

WORDS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
"""A run of letters and digits with apostrophes inside ("don't", "2nd"), or a single other sign."""

OTHER_SIGNS = re.compile(r"[^\w(),!?'`]+")
CONTRACTIONS = re.compile(r"('s|'ve|n't|'re|'d|'ll)")
KEPT_SIGNS = re.compile(r"([,!?()])")
ANY_SIGN = re.compile(r"[^\w\s]|_")


def words_of(text: str, how: str) -> list[str]:
    """Cut a text into words in one of four ways.

    `space`: what white space separates. `words`: words and single signs.

    `cleaned`: as the benchmarks are prepared. It follows Kim (2014), whose preparation the five
    sets have had since: of the signs only (),!?'` stay, the endings 's n't 've 're 'd 'll become
    words, and case stays. (He keeps ASCII letters alone; here any letter stays.)

    `plain`: lower-cased words of letters and digits only, as captions have them.

    >>> words_of("A man 's T-shirt , red .", "plain")
    ['a', 'man', 's', 'tshirt', 'red']
    """
    if how == "words":
        return WORDS.findall(text)
    if how == "cleaned":
        text = CONTRACTIONS.sub(r" \1", OTHER_SIGNS.sub(" ", text))
        text = KEPT_SIGNS.sub(r" \1 ", text)
    elif how == "plain":
        text = ANY_SIGN.sub("", text.lower())
    return text.split()


def split_unknown(words: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """For free text and a model of tokenised text: unknown pieces are cut at their punctuation."""
    pieces = ([word] if word in vocabulary.numbers else words_of(word, "words") for word in words)
    return [part for piece in pieces for part in piece]
