"""Texts are cut into words as each task was prepared."""

from langevin.data.spelling import words_of


def test_words_and_signs():
    assert words_of("Don't stop -- it's 3.5$!", "words") == [
        "Don't",
        "stop",
        "-",
        "-",
        "it's",
        "3",
        ".",
        "5",
        "$",
        "!",
    ]
    assert words_of("Who wrote this ?", "words") == words_of("Who wrote this ?", "space")
    cleaned = words_of("It's \"bright-eyed\" (and café-born) -- don't you think?", "cleaned")
    assert cleaned == [
        "It",
        "'s",
        "bright",
        "eyed",
        "(",
        "and",
        "café",
        "born",
        ")",
        "do",
        "n't",
        "you",
        "think",
        "?",
    ]
