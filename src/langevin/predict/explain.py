"""The probability of each token of a sentence, under every sample and under their average (Figure 3 of the paper)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.vocabulary import END, Vocabulary
from ..errors import LangevinError
from ..posterior.average import LogMean
from ..store.folder import RunFolder
from ..training.loop import prepare_device
from ..training.session import language_model_of


@torch.no_grad()
def explain_run(path: Path, text: str) -> dict[str, Any]:
    """Tokens, their probability under each sample, the averaged probability, and the spread over the samples."""
    folder = RunFolder(path)
    device = prepare_device(folder.recipe)
    model, vocabulary = language_model_of(folder)
    model = model.to(device).eval()
    tokens = with_start(vocabulary, text)
    mean, each = LogMean(), []
    samples = folder.store().read()
    for sample in samples:
        sample.load_into(model)
        logits, _ = model(tokens[None, :-1].to(device))
        log_p = torch.log_softmax(logits[0].cpu(), -1).gather(-1, tokens[1:, None])[:, 0]
        mean.add(log_p)
        each.append(log_p.exp())
    spread = torch.stack(each).std(0, correction=1 if len(each) > 1 else 0)
    return {
        "run": str(path), "text": text, "steps": [sample.step for sample in samples],
        "chains": [sample.chain for sample in samples],
        "tokens": [vocabulary.token_text(t) for t in tokens[1:].tolist()],
        "each": [p.tolist() for p in each], "averaged": mean.value().exp().tolist(), "std": spread.tolist(),
        "nll": -mean.value().mean().item(),
    }


def as_prompt(vocabulary: Vocabulary, text: str) -> Tensor:
    """The tokens of a text that is to be continued, after what ends the line before it where lines have an end.

    The last line of words is left open: it has no end yet, unless the text ends with one.
    """
    tokens = vocabulary.encode(text.encode())
    if vocabulary.level == "word" and END in vocabulary.numbers:
        start = torch.tensor([vocabulary.numbers[END]])
        return torch.cat([start, tokens if text.endswith("\n") else tokens[:-1]])
    if "\n" in vocabulary.numbers:
        return torch.cat([torch.tensor([vocabulary.numbers["\n"]]), tokens])
    return tokens


def with_start(vocabulary: Vocabulary, text: str) -> Tensor:
    """The same for a sentence of which at least one token is to be predicted."""
    tokens = as_prompt(vocabulary, text)
    if len(tokens) < 2:
        raise LangevinError(f"expected a sentence of at least one token, got {text!r}; pass some words")
    return tokens
