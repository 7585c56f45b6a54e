"""A run → a folder that stands alone, and back: config, vocabulary, samples, model card; no training data.

The layout follows the habits of the Hugging Face hub: `config.json`, safetensors, `README.md` with YAML on top.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from ..data.vocabulary import Vocabulary
from ..errors import LangevinError
from ..files import inside, sync_folder, write_atomic
from ..predict.predictors import PREDICTORS, Predictor
from ..recipe import Recipe
from ..recipe.load import validate
from ..tasks import model_of
from ..tasks.scoring import evaluate
from ..training.loop import prepare_device
from ..training.session import BEST, Begin, Selection, open_run_task, select, usual
from .card import model_card
from .folder import RECIPE, SAMPLES, VOCABULARY, RunFolder, read_vocabulary, write_marker
from .listing import MANIFEST, OLD_MANIFEST, Listing
from .manifest import Teacher
from .records import write_json, write_sealed
from .replacement import CARD, CONFIG, new_folder, replaceable, replacing
from .samples import Sample, SampleStore

FORMAT = 2
CHECKED = (VOCABULARY, f"{SAMPLES}/{MANIFEST}")
OLD_CHECKED = (VOCABULARY, f"{SAMPLES}/{OLD_MANIFEST}")
"""Files whose checksums the config lists."""
ALL = Selection()


def export(
    path: Path, out: Path, selection: Selection = ALL, *, float16: bool = False, overwrite: bool = False,
    measure: bool = True, begin: Begin = lambda n: lambda: None,
) -> dict[str, Any]:
    """Write the chosen samples of a run into a folder that needs nothing else; returns its config.

    With `measure` the samples as they are written are evaluated on the test split (and, for float16, as they were)
    where the data are there; otherwise the metrics are those that the run noted while it trained.
    """
    folder, out = RunFolder(path), out.resolve()
    refuse_occupied(out, overwrite=overwrite)
    samples, _ = select(folder, selection)
    making = new_folder(out)
    try:
        write_marker(making, "export")
        write_sealed(making / VOCABULARY, folder.vocabulary.to_json())
        written = write_samples(making / SAMPLES, samples, float16=float16)
        config = describe(folder, len(samples), float16=float16)
        found = measured(folder, written, samples if float16 else [], begin) if measure else None
        config["metrics"] = found or noted(folder)
        config["files"] = {name: sha256(making / name) for name in CHECKED}
        run = path.resolve().name
        commands = [training_command(folder, run), command_of(run, out.name, selection, float16=float16)]
        card = model_card(config, out.name, validate(config["recipe"]).to_toml(), commands)
        write_atomic(making / CARD, card.encode())
        write_json(making / CONFIG, config)
        with replacing(out) if overwrite else contextlib.nullcontext():
            refuse_occupied(out, overwrite=False)
            making.rename(out)
            sync_folder(out.parent)
    except OSError as error:
        raise LangevinError(f"cannot put the export at {out}: {error.strerror}; choose another folder") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)  # made above, under a random name
    return config


def training_command(folder: RunFolder, run: str) -> str:
    """How the run was made: by training on its recipe, in so many chains, or by a teacher."""
    teacher = folder.origin.teacher
    if teacher is not None:
        return distill_command(teacher, run, folder.recipe)
    chains = ["--chains", str(len(folder.chains))] if folder.chains else []
    return shlex.join(["langevin", "train", RECIPE, *chains])


def distill_command(teacher: Teacher, run: str, recipe: Recipe) -> str:
    """How a student was taught; its teacher is named without the path around it, samples count for each chain."""
    of_each = max(Counter(sample.chain for sample in teacher.samples).values())
    how = teacher.select
    options = {
        "out": run, "select": how, **({} if how == BEST else {"samples": of_each}), "discard": teacher.discard,
        "hidden": recipe.model.hidden, "epochs": recipe.run.epochs,
        "per-row": teacher.per_row, "data-weight": teacher.data_weight, "generated": teacher.generated,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return shlex.join(["langevin", "distill", Path(teacher.run).name, *words])


def command_of(run: str, out: str, selection: Selection, *, float16: bool) -> str:
    """How to make the same folder again; names without the paths around them."""
    words = ["langevin", "export", run, out, "--select", selection.how]
    words += ["--samples", str(selection.samples)] if selection.samples is not None else []
    words += ["--discard", str(selection.discard)] if selection.discard else []
    return shlex.join([*words, *(["--float16"] if float16 else [])])


def refuse_occupied(out: Path, *, overwrite: bool) -> None:
    """Only an empty folder, or an export when that is allowed, gives way."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not is_export(out):
        raise LangevinError(f"expected a new folder at {out}, it holds something else; choose another")
    if not overwrite:
        raise LangevinError(f"{out} already holds an exported model; choose another folder or allow --overwrite")
    replaceable(out)


def is_export(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / CONFIG).read_text("utf-8"))["library_name"] == "langevin")
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_samples(folder: Path, samples: Sequence[Sample], *, float16: bool) -> list[Sample]:
    """The samples under new numbers, with a manifest as in a run folder; chains are told apart in `about`."""
    written = []
    for number, sample in enumerate(samples):
        tensors = sample.load()
        if float16:
            tensors = {name: t.half() if t.is_floating_point() else t for name, t in tensors.items()}
            for name, tensor in tensors.items():
                if not torch.isfinite(tensor).all():
                    raise LangevinError(f"{name} of {sample.path} is too large for float16; export without --float16")
        content = safetensors.torch.save(tensors)
        target = folder / f"sample-{number:04d}.safetensors"
        write_atomic(target, content)
        about = sample.about | {"chain": sample.chain}
        written.append(Sample(target, sample.step, hashlib.sha256(content).hexdigest(), about, sample.chain))
    Listing(folder).replace(sample.record() for sample in written)
    return written


def describe(folder: RunFolder, samples: int, *, float16: bool) -> dict[str, Any]:
    """Everything that rebuilds the model and says what it is; paths are cut to the names of the files."""
    recipe, origin = folder.recipe, folder.origin
    name, settings = recipe.sampler.resolved(folder.facts["num_data"])
    computed = recipe.what_is_computed()
    computed["data"] = {
        key: Path(value).name if isinstance(value, str) and "/" in value else value
        for key, value in computed["data"].items()
    }
    return {
        "format": FORMAT, "library_name": "langevin", "langevin": version("langevin"), "task": recipe.task,
        "title": recipe.title, "model": computed["model"], "sampler": {"name": name} | settings, "samples": samples,
        "precision": "float16" if float16 else "float32", "recipe": computed,
        "facts": {"versions": origin.versions, "commit": origin.commit, **origin.data},
    }


def measured(
    folder: RunFolder, written: Sequence[Sample], before: Sequence[Sample], begin: Begin
) -> dict[str, Any] | None:
    """Metrics of the written samples (and of those before they were rounded), or None when the data are not there."""
    try:
        task = open_run_task(folder)
    except LangevinError:
        return None
    split = "test" if "test" in task.splits else "valid"
    model = task.build_model().to(prepare_device(folder.recipe))
    advance = begin(len(written) + len(before))
    now = evaluate(task, model, written, split, advance)
    result = {"split": split, "source": "evaluated when it was exported", "samples": len(written)}
    result |= {"single": now["single"], "averaged": now["averaged"]}
    if before:
        result["averaged_float32"] = evaluate(task, model, before, split, advance)["averaged"]
    return result


def noted(folder: RunFolder) -> dict[str, Any] | None:
    """What the run noted of its running average on validation while it trained."""
    progress = folder.progress()
    history = progress.lines() if progress else []
    lines = [line for line in history if "average" in line]
    if not lines or folder.chains:
        return None
    return {"split": "valid", "source": "noted while training, all samples", "samples": len(lines),
            "single": lines[-1]["valid"], "averaged": lines[-1]["average"]}


def load(
    folder: str | Path, *, samples: int | None = None, select: str | None = None, skip_damaged: bool = False,
    device: str = "cpu",
) -> Predictor:
    """A predictor from an exported folder, or from a run folder; the training data need not be there.

    Of a run it averages, untold, what validation chose when training ended, as the commands do.
    """
    path = Path(folder)
    if (path / CONFIG).is_file():
        recipe, vocabulary, facts = read_export(path)
        chosen = SampleStore(inside(path, SAMPLES), skip_damaged=skip_damaged).select(select or ALL.how, samples)
    elif (path / RECIPE).is_file():
        run = RunFolder(path)
        recipe, vocabulary, facts = run.recipe, run.vocabulary, run.facts
        chosen = samples_of(run, select, samples, skip_damaged=skip_damaged)
    else:
        what = "neither in it" if path.is_dir() else "nothing there"
        raise LangevinError(f"expected an exported model or a run at {path}, found {what}; see 'langevin export'")
    recipe = recipe.model_copy(update={"run": recipe.run.model_copy(update={"device": device, "threads": None})})
    model = model_of(recipe, vocabulary, facts).to(prepare_device(recipe))
    return PREDICTORS[recipe.task](model, chosen, recipe, vocabulary, facts)


def samples_of(run: RunFolder, how: str | None, count: int | None, *, skip_damaged: bool) -> list[Sample]:
    how = how or usual(run.path, count, skip_damaged=skip_damaged)
    return select(run, Selection(how, count, 0, skip_damaged))[0]


def read_export(path: Path) -> tuple[Recipe, Vocabulary, dict[str, Any]]:
    """Config and vocabulary, after checking that they are those that were written."""
    try:
        config = json.loads(inside(path, CONFIG).read_text("utf-8"))
        if config["library_name"] != "langevin" or config["format"] not in (1, FORMAT):
            raise LangevinError(
                f"expected a model exported by langevin in format {FORMAT} at {path}, got format {config['format']} of "
                f"{config['library_name']}; export it anew, or use the langevin that made it"
            )
        for name, expected in config["files"].items():
            if name not in (*CHECKED, *OLD_CHECKED):
                raise LangevinError(f"expected checksums of {', '.join(CHECKED)} in {path / CONFIG}, got one of "
                                    f"{name!r}; export anew")
            if sha256(inside(path, name)) != expected:
                raise LangevinError(f"{path / name} was changed after it was exported (its hash differs); export anew")
        vocabulary = read_vocabulary(inside(path, VOCABULARY))
        return validate(config["recipe"]), vocabulary, config["facts"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise LangevinError(f"the exported model at {path} is damaged: {error!r}; export it anew") from None


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
