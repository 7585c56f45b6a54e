"""The probability of each token of a sentence, under every sample and under their average (Figure 3 of the paper)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..data.vocabulary import SpelledText, Vocabulary
from ..errors import LangevinError
from ..posterior.average import LogMean
from ..store.folder import RunFolder
from ..process import prepare_device
from ..tasks.language_model import language_model_of


@torch.no_grad()
def explain_run(path: Path, text: str) -> dict[str, Any]:
    """Tokens, their probability under each sample, the averaged probability, and the spread over the samples."""
    folder = RunFolder(path)
    device = prepare_device(folder.recipe.run.device, folder.recipe.run.threads)
    model, vocabulary = language_model_of(folder)
    model = model.to(device).eval()
    sentence = spelled(vocabulary, text)
    tokens = sentence.tokens
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
        "tokens": vocabulary.pieces(tokens)[1:], "shown": vocabulary.pieces(tokens, sentence.unknown)[1:],
        "unknown_share": vocabulary.unknown_share(tokens[1:]),
        "each": [p.tolist() for p in each], "averaged": mean.value().exp().tolist(), "std": spread.tolist(),
        "nll": -mean.value().mean().item(),
    }


def spelled(vocabulary: Vocabulary, text: str) -> SpelledText:
    """A sentence of which at least one token is to be predicted, after the level's start."""
    sentence = vocabulary.spell(text)
    if len(sentence.tokens) < 2:
        raise LangevinError(f"expected a sentence of at least one token, got {text!r}; pass some words")
    return sentence
