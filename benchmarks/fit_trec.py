"""`BayesianTextClassifier.fit` on TREC against a bare PyTorch loop: same network, sentences,
batches and epochs.

python -m benchmarks.fit_trec [--rounds 3] [--epochs 2] [--json results/bench-fit.json]

The bare loop reads the same sentences, cuts them into words, numbers them, trains with RMSprop,
clips, and validates after each epoch. `fit` pays on top for the noise, the stored samples, the
checkpoints and the running average.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

from langevin import BayesianTextClassifier
from langevin.data.buckets import Buckets, by_length, lengths_of, pad
from langevin.data.folds import hold_out
from langevin.data.sentences import read_corpus_of_sentences
from langevin.data.spelling import words_of
from langevin.data.vocabulary import UNKNOWN, Vocabulary
from langevin.files import write_atomic
from langevin.process import available_cores, prepare_process
from langevin.store.manifest import commit

from .timing import Contender, interleave, ratio, timed

MUST = 1.10
HIDDEN, BATCH, LR, DROPOUT, CLIP = 200, 50, 2e-3, 0.5, 5.0


class Bare(nn.Module):
    """The network as one would write it without this project."""

    def __init__(self, words: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, HIDDEN)
        self.lstm = nn.LSTM(HIDDEN, HIDDEN, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(DROPOUT)
        self.output = nn.Linear(2 * HIDDEN, classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        vectors = self.dropout(self.embedding(tokens))
        packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, (last, _) = self.lstm(packed)
        return self.output(self.dropout(last.transpose(0, 1).flatten(1)))


def bare_fit(texts: list[str], labels: list[int], epochs: int) -> float:
    """Everything that `fit` does to a network without posterior; returns the validation error."""
    train, valid = hold_out(labels, range(len(labels)), 0.1, "valid")
    words = [words_of(text, "words") for text in texts]
    counts = Counter(word for n in train for word in words[n])
    vocabulary = Vocabulary.of_words(counts, first=[UNKNOWN])
    sentences = [vocabulary.encode_tokens(own) for own in words]
    targets = torch.tensor(labels)
    model = Bare(len(vocabulary), len(set(labels)))
    optimiser = torch.optim.RMSprop(model.parameters(), lr=LR)
    known = [sentences[n] for n in train]
    batches = Buckets(lengths_of(known), BATCH, seed=0)
    own = targets[torch.tensor(train)]
    error = 1.0
    for epoch in range(epochs):
        model.train()
        for index in range(len(batches)):
            members = batches.batch(epoch, index)
            tokens, lengths = pad([known[number] for number in members])
            optimiser.zero_grad()
            loss = F.cross_entropy(model(tokens, lengths), own[members])
            loss.item()  # as anyone who prints a loss or stops at NaN
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimiser.step()
        error = validate(model, [sentences[n] for n in valid], targets[torch.tensor(valid)])
    return error


@torch.no_grad()
def validate(model: nn.Module, sentences: list[Tensor], targets: Tensor) -> float:
    model.eval()
    wrong = 0
    for members in by_length(sentences, 256, 8192):
        rows = torch.tensor(members)
        wrong += int((model(*pad([sentences[n] for n in members])).argmax(-1) != targets[rows]).sum())
    return wrong / len(sentences)


def contenders(epochs: int) -> list[Contender]:
    corpus = read_corpus_of_sentences("trec")["train"]
    texts, labels = list(corpus.texts), [int(label) for label in corpus.labels]

    def ours(sampler: str) -> Callable[[], object]:
        made = BayesianTextClassifier(hidden=HIDDEN, batch_size=BATCH, lr=LR, dropout=DROPOUT, epochs=epochs,
                                      burn_in=0, sampler=sampler, patience=None)
        return lambda: made.fit(texts, labels)

    return [
        Contender("bare loop", timed(lambda: bare_fit(texts, labels, epochs))),
        Contender("fit, psgld", timed(ours("psgld"))), Contender("fit, rmsprop", timed(ours("rmsprop"))),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    prepare_process()
    torch.set_num_threads(available_cores())
    both = contenders(options.epochs)
    for contender in both:
        contender.run(1)  # compiles kernels, fills caches
    measured = interleave(both, rounds=options.rounds, seconds=None)
    result = {
        "seconds": {name: own["median"] for name, own in measured.items()},
        "fit_to_bare": {name: ratio(measured[name], measured["bare loop"]) for name in ("fit, psgld", "fit, rmsprop")},
        "must": MUST, "rounds": options.rounds, "epochs": options.epochs, "threads": torch.get_num_threads(),
        "commit": commit(),
    }
    print(json.dumps(result, indent=1))
    if options.json:
        write_atomic(options.json, json.dumps(result, indent=1).encode())


if __name__ == "__main__":
    main()
