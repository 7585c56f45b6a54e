"""A posterior → one network that predicts like its average: an ordinary run whose loss is taught by
the samples."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import LangevinError
from ..files import inside, listed_name
from ..posterior.average import members_of
from ..posterior.ensemble import Ensemble
from ..posterior.ensemble_reader import EnsembleReader
from ..posterior.mixture import log_mixture
from ..posterior.swag import weight_average
from ..recipe import Recipe, SamplerSettings, load_recipe
from ..store.checkpoint import load_generated, save_generated
from ..store.folder import GENERATED, ORIGIN, RECIPE, SAMPLES, RunFolder
from ..store.manifest import Teacher, TeacherSample
from ..store.replacement import replacing
from ..store.samples import SAMPLE, Sample
from ..tasks import Task, model_of, open_task
from ..tasks.distillation import DistillTask
from ..tasks.language_model import LanguageModelTask
from ..process import prepare_device
from .loop import Trainer, build
from .parallel import refuse_together
from ..posterior.selection import Selection
from ..posterior.selection import resolve
from ..tasks.choice import choosing

WORDS = ("level", "running", "min_count", "max_vocab", "tokens", "vocabulary")
"""Keys of the data table that decide what the tokens are."""
FACTS = ("labels", "tokens", "feature_width")
RECORDS = 5
"""Validations along the way; the last of them is the student."""


MOST_TOKENS = 10**9
"""That a teacher writes: it takes a forward pass for each."""


@dataclass(frozen=True)
class Teaching:
    """How a student is taught."""

    per_row: int = 2
    """Samples that teach each row of a batch, in turn: the forward passes of the teacher that a
    batch costs."""
    data_weight: float = 0.0
    """Weight of what was observed against what the teacher says."""
    generated: int = 0
    """Tokens of text to let the teacher write, and to train on as well."""

    def __post_init__(self) -> None:
        if self.per_row < 1 or not 0 <= self.data_weight <= 1 or not 0 <= self.generated <= MOST_TOKENS:
            raise LangevinError(
                f"expected at least one teacher, a data weight from 0 to 1 and from 0 to {MOST_TOKENS:,} tokens, got "
                f"{self.per_row}, {self.data_weight} and {self.generated}"
            )


def start_student(
    path: Path, out: Path, selection: Selection, teaching: Teaching, *, hidden: int | None = None,
    epochs: float | None = None, overrides: list[str] | None = None, overwrite: bool = False,
) -> Trainer:
    """A trainer of a student of the run in `path`, in a new run folder."""
    folder = RunFolder(path)
    chosen = resolve(folder, selection, choosing())
    samples = chosen.samples
    recipe = student_recipe(folder, hidden, epochs, overrides or [])
    refuse_words_unlike(recipe, folder.recipe)
    prepare_device(recipe.run.device, recipe.run.threads)
    task = open_task(recipe, folder.vocabulary, None if other_data(recipe, folder.recipe) else folder.facts)
    refuse_other_facts(task.facts, folder)
    if teaching.generated and not isinstance(task, LanguageModelTask):
        raise LangevinError(f"only language models can generate what to learn from, got one of {task.name}")
    build(recipe, task)
    teacher = Teacher(
        run=str(path.resolve()), per_row=teaching.per_row, data_weight=teaching.data_weight,
        generated=teaching.generated, select=chosen.how, discard=selection.discard,
        samples=tuple(TeacherSample(file=str(s.path.resolve()), step=s.step, sha256=s.sha256, chain=s.chain)
                      for s in samples),
    )
    # never its own teacher
    overwrite = overwrite and not path.resolve().is_relative_to(out.resolve())
    with replacing(out, recipe) if overwrite else contextlib.nullcontext():
        student = RunFolder.create(out, recipe, task.vocabulary, task.facts, teacher=teacher)
        return Trainer(student, taught(student, task))


def resume_student(folder: RunFolder) -> Trainer:
    """A trainer that stands where the student in this folder stopped; its teacher must still be
    there."""
    refuse_together("a student")
    return Trainer(folder, taught(folder, open_task(folder.recipe, folder.vocabulary, folder.facts)))


def taught(student: RunFolder, task: Task) -> DistillTask:
    """The task of a student with the teacher that its folder names."""
    teacher = student.origin.teacher
    assert teacher is not None
    refuse_other_files(student, teacher)
    samples = [Sample(Path(s.file), s.step, s.sha256, chain=s.chain) for s in teacher.samples]
    if not all(sample.path.is_file() for sample in samples):
        raise LangevinError(f"expected the teacher of {student.path} at {teacher.run}, some of its samples are not "
                            f"there; bring it back to go on with its student")
    folder = RunFolder(teacher.run)
    device = prepare_device(student.recipe.run.device, student.recipe.run.threads)
    members = members_of(model_of(folder.recipe, folder.vocabulary, folder.facts).to(device), samples)
    if teacher.generated:
        assert isinstance(task, LanguageModelTask)
        task.add_training(teacher_text(inside(student.path, GENERATED), task, members, teacher.generated))
    own = [sample for sample in samples if sample.chain == samples[-1].chain]
    return DistillTask(task, members, weight_average(own), per_row=teacher.per_row,
                       data_weight=teacher.data_weight)


def refuse_other_files(student: RunFolder, teacher: Teacher) -> None:
    """The samples that teach are in the folder of the run that the student names, under names that
    we give."""
    run, source = Path(teacher.run).resolve(), student.path / ORIGIN
    for sample in teacher.samples:
        path = Path(sample.file)
        listed_name(path.name, SAMPLE, source)
        if path.parent.name != SAMPLES or not path.resolve().is_relative_to(run):
            raise LangevinError(f"expected the samples of {run} in {source}, got {path}; distil anew")


def student_recipe(folder: RunFolder, hidden: int | None, epochs: float | None, overrides: list[str]) -> Recipe:
    """The teacher's recipe with an optimiser that ends at rate 0 and keeps the last weights, then
    the user's keys.

    Epochs, unless given: a quarter of the teacher's from the average of its weights, all of them
    from new weights.
    """
    given = [*overrides, *([f"hidden={hidden}"] if hidden else []), *([f"epochs={epochs}"] if epochs else [])]
    if any(override.partition("=")[0].strip() == "task" for override in overrides):
        raise LangevinError(f"a student has the task of its teacher, {folder.recipe.task}; leave task as it is")
    teacher, source = folder.recipe, folder.path / RECIPE
    optimiser = [f"{key}=none" for key in SamplerSettings.model_fields]
    optimiser += ["name=rmsprop", "lr=0.001", "beta=0.95", "patience=none", "burn_in=0", "sample_every=1e-9"]
    optimiser += ["lr_schedule=constant", "sample=last"]
    optimiser += [f"title={teacher.title or teacher.task}, distilled"]
    wanted = load_recipe(source, [*optimiser, *given])
    same = wanted.model == teacher.model
    length = wanted.run.epochs if epochs or any(o.startswith(("epochs=", "run.epochs=")) for o in overrides) else (
        teacher.run.epochs / 4 if same else teacher.run.epochs
    )
    schedule = [
        f"epochs={length}", f"sample_every={length / RECORDS}", "lr_schedule=cyclical", f"cycle={length}",
        f"cycle_explore={1 - 0.75 / RECORDS}",
    ]
    return load_recipe(source, [*optimiser, *schedule, *given])


def other_data(recipe: Recipe, teacher: Recipe) -> bool:
    """Whether the student reads other data than its teacher did."""
    return any(getattr(recipe.data, key, None) != getattr(teacher.data, key, None)
               for key in ("corpus", "features", "valid_file", "test_file", "fold", "valid_share", "test_share"))


def refuse_words_unlike(recipe: Recipe, teacher: Recipe) -> None:
    """Soft targets are over the teacher's words: a student with others cannot learn from them."""
    for key in WORDS:
        ours, theirs = getattr(recipe.data, key, None), getattr(teacher.data, key, None)
        if ours != theirs:
            raise LangevinError(
                f"a student has the vocabulary of its teacher, got {key} = {ours} where the teacher has {theirs}; "
                f"leave {key} as it is"
            )


def refuse_other_facts(facts: dict[str, Any], folder: RunFolder) -> None:
    remembered = folder.facts
    for key in FACTS:
        if facts.get(key) != remembered.get(key):
            raise LangevinError(f"a student must have the {key} of its teacher ({remembered.get(key)}), the data have "
                                f"{facts.get(key)}; distil on data like the teacher's")


def teacher_text(path: Path, task: LanguageModelTask, members: list[nn.Module], tokens: int) -> Tensor:
    """What the teacher wrote, [rows, time], read or written now: a function of the samples and the
    seed."""
    if not path.is_file():
        save_generated(path, write_on(task, members, tokens).to(torch.int32))
    return load_generated(path).long()


def write_on(task: LanguageModelTask, members: list[nn.Module], tokens: int) -> Tensor:
    """About so many tokens from p̄, in as many streams as training has, each after the end of one
    of them."""
    generator = torch.Generator().manual_seed(task.recipe.run.seed)
    given = task.evaluated["train"].streams[:, -task.data.window :].long()
    reader = EnsembleReader(Ensemble(members[0], members), len(task.vocabulary), task.vocabulary.start)
    reader.begin(len(given))
    reader.read(given)
    made = list[Tensor]()
    for _ in range(-(-tokens // len(given))):
        p = log_mixture(reader.foresee(), reader.weights).exp()
        made.append(torch.multinomial(p, 1, generator=generator))
        reader.read(made[-1])
    return torch.cat(made, 1)
