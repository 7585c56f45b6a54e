"""The encoder fine-tuned whole: AdamW, linear decay, the epoch that validation prefers."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from langevin.data.buckets import Buckets, in_length_order, lengths_of, pad
from langevin.models.encoder_files import find_encoder
from langevin.models.encoder_loading import load_encoder, quiet_transformers

from .records import Record
from .sentence_sets import ENCODER, PARTS, SentenceSplits

RATE, DECAY, EPOCHS, BATCH, WARM_UP, LONGEST = 5e-5, 0.01, 4, 32, 0.1, 128


class FineTuned(nn.Module):
    """The mean of the last states → classes."""

    def __init__(self, encoder: Any, classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(encoder.config.hidden_size, classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        seen = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
        states = self.encoder(input_ids=tokens, attention_mask=seen).last_hidden_state
        mean = (states * seen[..., None]).sum(1) / lengths[:, None].clamp(min=1)
        logits: Tensor = self.output(self.dropout(mean))
        return logits


def fine_tune(data: SentenceSplits, epochs: int = EPOCHS) -> tuple[FineTuned, list[Record]]:
    """The best epoch's weights, and what validation said of each."""
    torch.manual_seed(data.seed)
    _, encoder = load_encoder(find_encoder(ENCODER))
    model = FineTuned(encoder.requires_grad_(True), len(data.classes))
    rows = tokenise(data)
    batches = Buckets(lengths_of(rows["train"]), BATCH, data.seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    total = epochs * len(batches)

    def factor(step: int) -> float:
        return min(1.0, (step + 1) / (WARM_UP * total)) * (1 - step / total)

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, factor)
    trials, best = list[Record](), model
    for epoch in range(epochs):
        model.train()
        for index in range(len(batches)):
            members = batches.batch(epoch, index)
            logits = model(*pad([rows["train"][number] for number in members]))
            optimiser.zero_grad()
            F.cross_entropy(logits, data.targets["train"][members]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            scheduler.step()
        nll = F.nll_loss(predicted(model, rows["valid"]), data.targets["valid"]).item()
        trials.append({"epoch": epoch + 1, "valid_nll": nll})
        if nll <= min(trial["valid_nll"] for trial in trials):
            best = copy.deepcopy(model)
    return best, trials


def tokenise(data: SentenceSplits) -> dict[str, list[Tensor]]:
    tokenizer, _ = load_encoder(find_encoder(ENCODER))
    with quiet_transformers():
        return {
            part: [torch.tensor(row) for row in
                   tokenizer(data.texts[part], truncation=True, max_length=LONGEST)["input_ids"]]
            for part in PARTS
        }  # fmt: skip


@torch.no_grad()
def predicted(model: FineTuned, rows: list[Tensor]) -> Tensor:
    """log p, [items, classes]."""
    model.eval()
    return in_length_order(rows, lambda tokens, lengths: model(tokens, lengths).log_softmax(-1))
