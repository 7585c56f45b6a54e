"""A frozen encoder: texts → hidden states of a pretrained transformer, computed once.

Any model that transformers opens from a folder or its cache. Nothing is trained, fetched or run
that comes with the weights: no network, safetensors only, no code of the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from ..data.buckets import by_length, pad
from ..data.vectors import file_sha256
from ..errors import LangevinError
from .encoder_files import CONFIG, weights_checksum, find_encoder, find_weights
from .encoder_loading import load_encoder, quiet_transformers, read_limit
from .state_cache import Halves, StateCache, StateFile, TokenStates, key_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LAYERS = (-1, -4)
"""The last and the fourth-last, whose states a recurrent network reads best side by side."""
Progress = Callable[[int, int], None]
"""Called with the number of texts that are done, and of all."""


@dataclass(frozen=True)
class Encoder:
    """States of chosen layers, side by side."""

    name: str
    sha256: str
    """Of the weights."""
    config_sha256: str
    layers: tuple[int, ...]
    limit: int
    """Tokens that it reads of a text at most."""
    width: int
    """Numbers for each token."""
    _tokenizer: PreTrainedTokenizerBase = field(repr=False, compare=False)
    _model: PreTrainedModel = field(repr=False, compare=False)

    @classmethod
    def open(cls, name_or_folder: str, layers: Sequence[int] = LAYERS) -> Self:
        """The encoder of a folder, a package, or transformers' cache. −1 is the last layer."""
        folder = find_encoder(name_or_folder)
        weights = find_weights(folder)
        tokenizer, model = load_encoder(folder)
        depth, width = int(model.config.num_hidden_layers), int(model.config.hidden_size)
        strange = [layer for layer in layers if not -depth <= layer <= -1]
        if strange or not layers:
            raise LangevinError(f"expected layers from -1, the last, to -{depth} of "
                                f"{name_or_folder}, got {strange or 'none'}; choose among these")
        return cls(name_or_folder, weights_checksum(weights), file_sha256(folder / CONFIG), tuple(layers),
                   read_limit(tokenizer, model), width * len(layers), tokenizer, model)

    def facts(self) -> dict[str, object]:
        """What a run remembers of its encoder, by which another is refused."""
        return {"name": self.name, "sha256": self.sha256, "config_sha256": self.config_sha256,
                "layers": list(self.layers), "width": self.width}

    def encode(
        self, texts: Sequence[str], cache: StateCache | None = None,
        progress: Progress = lambda done, total: None,
    ) -> TokenStates:  # fmt: skip
        """States of every token and their mean, for each text; from the cache if they are there.

        Texts beyond `limit` tokens are cut, and counted. Tokens that the encoder sets at the ends
        count too, so that an empty text has some.
        """
        rows, long = self.tokens(texts)
        ends = torch.tensor([len(row) for row in rows], dtype=torch.int64).cumsum(0)
        total = int(ends[-1]) if len(rows) else 0
        if cache is None or not total:  # nothing cannot be mapped
            states = np.empty((total, self.width), np.float16)
            means = self._fill(states, rows, ends, progress)
            return TokenStates(states, ends, means, long)
        key = key_of((self.sha256, self.config_sha256, self.layers), rows)
        found = cache.find(key, self.width)
        if found is None:
            with cache.write(key, total, self.width) as file:
                means = self._fill(file, rows, ends, progress)
            cache.keep(key, ends, means)
            found = cache.find(key, self.width)
        else:
            progress(len(texts), len(texts))
        if found is None:
            raise LangevinError(f"expected the states just written in {cache.folder}, they are "
                                f"gone; do not let others empty it meanwhile")
        return TokenStates(found.states, found.ends, found.means, long)

    def tokens(self, texts: Sequence[str]) -> tuple[list[Tensor], tuple[int, ...]]:
        """Numbers of the tokens of each text, and which texts were cut."""
        if isinstance(texts, str):
            raise LangevinError("expected a list of texts, got one text; put it into a list")
        if not texts:
            return [], ()
        with quiet_transformers():
            whole = self._tokenizer(list(texts), truncation=False)["input_ids"]
            long = tuple(at for at, row in enumerate(whole) if len(row) > self.limit)
            for number in long:
                whole[number] = self._tokenizer(texts[number], truncation=True,
                                                max_length=self.limit)["input_ids"]
        return [torch.tensor(row, dtype=torch.int64) for row in whole], long

    def _fill(
        self, store: Halves | StateFile, rows: list[Tensor], ends: Tensor, progress: Progress
    ) -> Tensor:
        """Puts the states of all rows into their places; returns their means."""
        means, done = torch.zeros(len(rows), self.width), 0
        edges = list(pairwise([0, *ends.tolist()]))
        for batch in by_length(rows):
            states = self._states(*pad([rows[number] for number in batch]))
            for number, padded in zip(batch, states, strict=True):
                start, stop = edges[number]
                if start == stop:
                    continue
                halves = padded[: stop - start].half()
                if not bool(halves.isfinite().all()):
                    raise LangevinError(f"expected states within float16 of {self.name}, text "
                                        f"{number + 1} has others; choose another encoder")
                store[start:stop] = halves.numpy()
                means[number] = padded[: stop - start].mean(0)
            done += len(batch)
            progress(done, len(rows))
        return means

    def _states(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """[texts, tokens, width] of padded rows."""
        seen = torch.arange(tokens.shape[1]) < lengths[:, None]
        with torch.inference_mode():
            output = self._model(input_ids=tokens, attention_mask=seen.long(),
                                 output_hidden_states=True)
            layers: tuple[Tensor, ...] = output.hidden_states
            return torch.cat([layers[layer] for layer in self.layers], -1)
