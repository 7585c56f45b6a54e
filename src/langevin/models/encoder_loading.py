"""transformers, asked for a tokenizer and a model of a folder, and for nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from ..errors import LangevinError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

UNUSED = ("pooler.",)
"""Weights that a model may come without: they work behind the last layer."""


def load_encoder(folder: Path) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    """Tokenizer and frozen model in float32; weights that are not all there are refused."""
    from transformers import AutoTokenizer

    with opening(folder, "encoder"):
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    model = load_model(folder, "encoder")
    if model.config.is_encoder_decoder or not {"hidden_size", "num_hidden_layers"} <= set(
        dir(model.config)
    ):
        raise LangevinError(f"expected an encoder of texts in {folder}, got "
                            f"{model.config.model_type}; name one such as BERT")
    embeddings: Tensor = model.get_input_embeddings().weight  # type: ignore[assignment]  # of nn.Embedding
    words, rows = len(tokenizer), embeddings.shape[0]
    if not len(tokenizer.all_special_ids) < words <= rows:  # without its files it is made empty
        raise LangevinError(f"expected a tokenizer with words for {rows:,} embeddings in {folder}, "
                            f"got one with {words:,}; get the encoder again")
    return tokenizer, model


def load_model(folder: Path, what: str) -> PreTrainedModel:
    """The frozen model of a folder in float32; weights that are not all there are refused."""
    from transformers import AutoModel

    with opening(folder, what):
        model, info = AutoModel.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True,
            output_loading_info=True, dtype=torch.float32,
        )  # fmt: skip
    missing = [name for name in info["missing_keys"] if not name.startswith(UNUSED)]
    if missing:
        raise LangevinError(f"expected all weights of {model.config.model_type} in {folder}, "
                            f"{len(missing)} are missing (first {sorted(missing)[0]}); get the "
                            f"{what} again")
    frozen: PreTrainedModel = model.eval().requires_grad_(False)
    return frozen


@contextmanager
def opening(folder: Path, what: str) -> Iterator[None]:
    """transformers raises whatever it stumbles over; it is told in one line."""
    try:
        with quiet_transformers():
            yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError,
            SafetensorError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise LangevinError(f"expected an {what} that transformers opens in {folder}, it says: "
                            f"{reason[0]}; get the {what} again, or name another") from error


def read_limit(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> int:
    """How many tokens tokenizer and model take; some models leave their first places empty."""
    limits = [int(tokenizer.model_max_length)]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - first)
    if "max_position_embeddings" in dir(model.config):
        limits.append(int(model.config.max_position_embeddings))
    return min(limits)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """transformers without progress bars and advice; its settings are put back."""
    from transformers.utils import logging

    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(ERROR)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
