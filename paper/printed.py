"""The numbers printed in Gan et al. (ACL 2017), by the name of the recipe that computes the same
cell."""

from __future__ import annotations

Cells = dict[str, dict[str, float]]


def rows(prefix: str, methods: tuple[str, ...], columns: tuple[str, ...], numbers: list[list[float]]) -> Cells:
    """One row of numbers for each method."""
    return {
        f"{prefix}-{method}": dict(zip(columns, values, strict=True))
        for method, values in zip(methods, numbers, strict=True)
    }


FIVE = ("rmsprop", "rmsprop-dropout", "rmsprop-gal", "psgld", "psgld-dropout")
FOUR = ("sgd", "sgd-dropout", "sgld", "sgld-dropout")
CAPTION_METRICS = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "meteor", "cider", "rouge_l", "perplexity")

WAR_AND_PEACE: Cells = {
    f"wp-{cell}-{method}": {"nll": value}
    for method, values in {"rmsprop": (1.3607, 1.2759, 1.4239), "psgld": (1.3375, 1.2561, 1.4093)}.items()
    for cell, value in zip(("lstm", "gru", "rnn"), values, strict=True)
}
"""Table 2: test cross-entropy, nats per character."""

PTB: Cells = {
    name: cell
    for setting, numbers in {
        "small-random": (123.85, 136.39, 117.36, 139.54), "medium-random": (126.31, 100.12, 109.14, 99.58),
        "large-random": (130.25, 97.65, 105.86, 94.03), "small-successive": (113.45, 117.85, 108.61, 125.44),
        "medium-successive": (123.14, 84.60, 121.16, 82.71), "large-successive": (127.68, 80.85, 131.40, 78.91),
    }.items()
    for name, cell in rows(f"ptb-{setting}", FOUR, ("perplexity",), [[value] for value in numbers]).items()
}
"""Table 3: test perplexity."""

FLICKR8K = rows("flickr8k", FIVE, CAPTION_METRICS, [
    [0.640, 0.427, 0.288, 0.197, 0.205, 0.476, 0.500, 16.64],
    [0.647, 0.444, 0.305, 0.209, 0.208, 0.514, 0.510, 15.72],
    [0.651, 0.443, 0.305, 0.209, 0.206, 0.501, 0.509, 14.70],
    [0.669, 0.463, 0.321, 0.224, 0.214, 0.535, 0.522, 14.29],
    [0.656, 0.450, 0.309, 0.211, 0.209, 0.512, 0.512, 14.26],
])
FLICKR30K = rows("flickr30k", FIVE, CAPTION_METRICS, [
    [0.644, 0.422, 0.279, 0.184, 0.180, 0.372, 0.476, 17.80],
    [0.656, 0.435, 0.295, 0.200, 0.185, 0.396, 0.481, 18.05],
    [0.636, 0.429, 0.290, 0.197, 0.190, 0.408, 0.480, 17.27],
    [0.657, 0.438, 0.300, 0.206, 0.192, 0.421, 0.490, 15.61],
    [0.666, 0.448, 0.308, 0.209, 0.189, 0.419, 0.487, 17.05],
])
"""Table 4."""

SENTENCES: Cells = {
    name: cell
    for corpus, numbers in {
        "mr": ([21.86, 1.19], [20.52, 0.99], [20.22, 1.12], [20.36, 0.85], [19.33, 1.10]),
        "cr": ([20.20, 1.35], [19.57, 1.79], [19.29, 1.93], [18.72, 1.28], [18.18, 1.32]),
        "subj": ([8.13, 1.19], [7.24, 0.86], [7.52, 1.17], [7.00, 0.89], [6.61, 1.06]),
        "mpqa": ([10.60, 1.28], [10.66, 0.74], [10.59, 1.12], [10.54, 0.99], [10.22, 0.89]),
        "trec": ([8.14, 0.63], [7.48, 0.47], [7.34, 0.66], [7.48, 0.82], [6.88, 0.65]),
    }.items()
    for name, cell in rows(corpus, FIVE, ("error", "std"), list(numbers)).items()
}
"""Table 5: test error in %, mean and standard deviation over ten folds (TREC: ten runs)."""

ABLATION: dict[str, tuple[float, float, float, float]] = {
    "trec": (8.14, 8.34, 7.54, 7.48), "ptb-small": (120.45, 122.14, 114.86, 109.44),
}
"""Table 6: the optimiser, noise without averaging, averaging without noise, both."""

TIME = {"training": (20324.0, 12578.0), "testing": (7047.0, 1311.0)}
"""Table 7: seconds on Flickr30k, pSGLD and RMSprop + dropout."""
