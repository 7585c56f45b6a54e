"""The weights of a model as named tensors, and back into a model of the same shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor, nn

from ..errors import LangevinError


class DamagedSample(LangevinError):
    """A sample that is missing, truncated, foreign, altered, or of another model."""


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters (tied ones once) and buffers of a model, by name, contiguous and on the CPU."""
    state = model.state_dict()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in state}
    named = dict(model.named_parameters()) | buffers
    return {name: tensor.detach().contiguous().cpu() for name, tensor in named.items()}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copy stored tensors into a model, refusing any difference in names or shapes.

    What torch.compile and DataParallel put before names does not matter, on either side.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in weights(model).items()}
    tensors = named_alike(tensors, expected)
    got = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if expected != got:
        differing = [name for name in expected | got if expected.get(name) != got.get(name)]
        name = min(differing)
        raise DamagedSample(
            f"{source} does not fit the model: {name} is {got.get(name, 'absent')} there, "
            f"{expected.get(name, 'absent')} in the model; use the store of this model"
        )
    model.load_state_dict(tensors, strict=False)


def named_alike(tensors: Mapping[str, Tensor], names: Iterable[str]) -> Mapping[str, Tensor]:
    """The tensors under the names of a model, where theirs differ by wrappers alone."""
    names = list(names)
    if set(tensors) == set(names):
        return tensors
    plain_names = {without_wrappers(name): name for name in names}
    plain_tensors = {without_wrappers(name): tensor for name, tensor in tensors.items()}
    if len(plain_names) < len(names) or len(plain_tensors) < len(tensors):
        return tensors  # two would get one name
    return {plain_names.get(name, name): tensor for name, tensor in plain_tensors.items()}


def without_wrappers(name: str) -> str:
    """`_orig_mod.` anywhere is torch.compile's, `module.` in front DataParallel's and others'."""
    parts = [part for part in name.split(".") if part != "_orig_mod"]
    while len(parts) > 1 and parts[0] == "module":
        parts.pop(0)
    return ".".join(parts)
