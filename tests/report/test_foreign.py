from dataclasses import replace

from langevin.predict.results import Foreignness
from langevin.report.foreign import foreign_in_words

HOME = Foreignness(
    run="r", source="f", split="test", samples=2, window=40, tokens=400, available=400, nll=1.0,
    quantile=0.4, beyond=0.0, held_out=(0.5, 0.7, 1.1, 1.5, 2.0), unknown_share=0.0,
    between_members=0.0, within_samples=0.1,
)


def test_the_verdict_counts_windows_and_unknown_words():
    assert foreign_in_words(HOME) == "at home (percentile 40 of the test split)"
    assert foreign_in_words(replace(HOME, beyond=0.3)).startswith("foreign in parts (")
    assert foreign_in_words(replace(HOME, beyond=0.6)).startswith("foreign (")
    unknown = foreign_in_words(replace(HOME, unknown_share=0.47))
    assert unknown.startswith("foreign, as 47 % of it are unknown words")
