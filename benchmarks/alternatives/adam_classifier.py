"""The network of the recipe `classify` by Adam with weight decay; its snapshots; its masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from langevin.recipe import load_recipe
from langevin.tasks.classification import ClassifyTask, log_probs_of

from .class_scores import Said
from .one_network import Weights, copied
from .records import Record, clocked
from .sentence_sets import SentenceSplits
from .text_scores import last_of

RATES, DECAY, EPOCHS, CLIP, MASKS = (5e-4, 1e-3, 2e-3, 4e-3), 0.01, 12, 5.0, 16


@dataclass
class AdamRun:
    """The weights after each epoch and what validation says of them."""

    task: ClassifyTask
    rate: float
    weights: list[Weights]
    valid: list[Tensor]
    seconds: float

    @property
    def best_epoch(self) -> int:
        return min(range(len(self.valid)), key=self.nll)

    def nll(self, epoch: int) -> float:
        return F.nll_loss(self.valid[epoch], self.task.targets["valid"]).item()

    def last(self) -> list[Weights]:
        """The last snapshots, as many as foresee validation best together."""
        truth = self.task.targets["valid"]
        log_p = torch.stack([-F.nll_loss(own, truth, reduction="none") for own in self.valid])
        return self.weights[-last_of(log_p) :]

    def say(self, weights: list[Weights], foreign: list[str], masks: int = 0) -> Said:
        """By each of these weights, or by so many dropout masks of the first."""
        model = self.task.build_model()
        words = self.task.words
        sentences = self.task.sentences | {
            "foreign": [self.task.vocabulary.encode_tokens(words(text)) for text in foreign]
        }
        found: dict[str, list[Tensor]] = {"valid": [], "test": [], "foreign": []}
        draws = [(own, None) for own in weights] if not masks else [(weights[0], n) for n in range(masks)]
        for own, seed in draws:
            model.load_state_dict(own)
            for part, said in found.items():
                said.append(log_probs_of(model, sentences[part], seed))
        return Said(**{part: torch.stack(said) for part, said in found.items()})


def adam_run(data: SentenceSplits, rate: float, epochs: int = EPOCHS) -> AdamRun:
    """Constant for three quarters, then along a line to zero."""
    recipe = load_recipe("classify", data.chosen.settings(data.seed))
    task = ClassifyTask(recipe)
    torch.manual_seed(data.seed)
    model = task.build_model()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=rate, weight_decay=DECAY)
    total = epochs * task.batches_per_epoch
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1.0, 4 * (1 - step / total)))
    made = AdamRun(task, rate, [], [], 0.0)
    with clocked() as clock:
        for epoch in range(epochs):
            model.train()
            for index in range(task.batches_per_epoch):
                loss, _ = task.loss(model, epoch, index, None)
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(trained, CLIP)
                optimiser.step()
                scheduler.step()
            made.weights.append(copied(model))
            made.valid.append(task.log_probs(model, "valid"))
    made.seconds = clock.cpu
    return made


def tuned_run(data: SentenceSplits, rates: tuple[float, ...]) -> tuple[AdamRun, list[Record]]:
    """At the rate whose best epoch validation prefers."""
    trials, best = list[Record](), None
    for rate in rates:
        made = adam_run(data, rate)
        nll = made.nll(made.best_epoch)
        trials.append({"rate": rate, "valid_nll": nll, "seconds": round(made.seconds, 2)})
        if best is None or nll < best.nll(best.best_epoch):
            best = made
    assert best is not None
    return best, trials if len(rates) > 1 else []
