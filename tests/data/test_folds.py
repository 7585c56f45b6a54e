"""Splits are stratified, cover everything once, and never change."""

from collections import Counter

from langevin.data.folds import fold_by_label, hold_out, split_sha256

LABELS = [0] * 53 + [1] * 31 + [2] * 7


def test_folds_are_even_in_size_and_in_every_class():
    folds = fold_by_label(LABELS, 10)
    assert set(Counter(folds).values()) == {9, 10}
    for name in range(3):
        sizes = Counter(fold for fold, label in zip(folds, LABELS, strict=True) if label == name)
        assert max(sizes.values()) - min(sizes[fold] for fold in range(10)) <= 1


def test_held_out_items_are_a_stratified_share():
    items = list(range(0, len(LABELS), 2))
    rest, held = hold_out(LABELS, items, 0.2, "valid")
    assert sorted(rest + held) == items
    assert rest == sorted(rest)
    assert len(held) == int(0.2 * len(items))
    for name, count in Counter(LABELS[item] for item in items).items():
        assert abs(sum(LABELS[item] == name for item in held) - 0.2 * count) <= 1
    assert held != hold_out(LABELS, items, 0.2, "test")[1]


def test_the_folds_of_today_are_the_folds_of_tomorrow():
    """Results name folds by number: these must never move."""
    assert fold_by_label([0, 1] * 6, 3) == [1, 2, 2, 0, 2, 1, 0, 0, 1, 1, 0, 2]
    assert split_sha256({"a": [1, 2], "b": [3]}) == split_sha256({"b": [3], "a": [1, 2]})
