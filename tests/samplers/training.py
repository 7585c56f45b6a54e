"""A small network to train, steps under given gradients, and a state as checkpoints keep it."""

import json

import torch
from torch.nn import functional as F


class LanguageModel(torch.nn.Module):
    """The smallest network with all that matters: rows without gradient, recurrence, a softmax
    head."""

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding = torch.nn.Embedding(30, 8)
        self.lstm = torch.nn.LSTM(8, 8, batch_first=True)
        self.head = torch.nn.Linear(8, 30)
        if tied:
            self.head.weight = self.embedding.weight

    def loss(self, tokens: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.lstm(self.embedding(tokens[:, :-1]))[0])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def train(model, optimizer, steps=20, scheduler=None, first=0):
    """Random tokens of which a third never occur as input; batch i depends on i alone."""
    for i in range(first, first + steps):
        tokens = torch.randint(0, 20, (4, 7), generator=torch.Generator().manual_seed(i))
        optimizer.zero_grad()
        model.loss(tokens).backward()
        optimizer.step()
        if scheduler:
            scheduler.step()


def random_gradients(sampler, steps, first=0):
    """Steps under gradients that depend on the number of the step alone."""
    for i in range(first, first + steps):
        generator = torch.Generator().manual_seed(i)
        for group in sampler.param_groups:
            for p in group["params"]:
                p.grad = torch.randn(p.shape, generator=generator, dtype=p.dtype)
        sampler.step()


def through_files(state_dict):
    """As a checkpoint keeps it: named tensors here, JSON there, no pickle."""
    tensors = {f"{i}/{key}": t.clone() for i, entry in state_dict["state"].items() for key, t in entry.items()}
    state: dict[int, dict[str, torch.Tensor]] = {}
    for path, tensor in tensors.items():
        index, key = path.split("/")
        state.setdefault(int(index), {})[key] = tensor
    return {"state": state, "param_groups": json.loads(json.dumps(state_dict["param_groups"]))}
