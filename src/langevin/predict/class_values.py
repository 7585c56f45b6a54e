"""Classes as the user gave them, of any type, and the names that stand for them in files."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.sentences import Sentences
from ..errors import LangevinError
from .classification import ClassificationPosterior


def class_facts(classes: Any) -> dict[str, Any]:
    """The classes as the user gave them, with their type, to be kept with the run."""
    return {"classes": {"dtype": classes.dtype.str if classes.dtype != object else "object",
                        "classes": classes.tolist()}}


def classes_of(posterior: ClassificationPosterior) -> Any:
    """As `class_facts` told them when the run began; of other runs the labels of their file."""
    kept = posterior.facts.get("classes")
    if kept is None:
        return np.array(posterior.labels)
    try:
        return np.array(kept["classes"], dtype=kept["dtype"])
    except (ValueError, KeyError, TypeError) as error:
        raise LangevinError(f"expected the classes in {posterior.path}, they cannot be read: "
                            f"{error!r}; fit it again") from None


def label_names(classes: Any) -> list[str]:
    """What stands for each class in the file of sentences, and what commands answer: the class
    itself as text, or its number where reading the file back would confuse the classes."""
    names = [str(name) for name in classes.tolist()]
    read = Sentences(tuple(names), tuple(name.strip() for name in names), sha256="").names
    if list(read) == names and all(names):
        return names
    return [str(number) for number in range(len(names))]
