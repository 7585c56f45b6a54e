"""The law: a damaged folder is refused, or answers as the sound one; nothing outside is written.

Two ways out are not damage. A recipe may be edited on purpose, and then it must be said that it
was. A forged file, one with the right checksum of false content, may be believed as far as it is
possible; it must end in no traceback and change nothing outside.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.asking import PICTURES, TEXT, TEXTS, Answer, ask, ask_door, tree
from tests.fuzz.folders import HALF, OLD, POOLED, RECIPES, SHARED, STUDENT, copied
from tests.fuzz.mutations import DAMAGE, FORGERY

DOOR = "langevin.load"
LOOK = {
    "evaluate": ["evaluate", "DIR", "--json"], "show": ["show", "DIR", "--json"],
    "diagnose": ["diagnose", "DIR", "--batches", "0", "--probes", "4", "--json"],
    "uncertainty": ["uncertainty", "DIR", "--top", "2", "--tokens", "50", "--json"],
    "check": ["check", "DIR", "--json"], DOOR: [DOOR, "DIR"],
    "export": ["export", "DIR", "out", "--no-evaluate", "--json"],
    "report": ["report", "DIR", "--out", "page.html", "--tokens", "50", "--quiet"],
    "resume": ["resume", "DIR", "--quiet", "--json"],
}
READ = {
    "explain": ["explain", "DIR", TEXT, "--json"],
    "generate": ["generate", "DIR", "--prompt", "The ", "--length", "5", "--json"],
}
SORT = {
    "classify": ["classify", "DIR", *TEXTS, "--coverage", "0.8", "--json"],
    "decide": ["decide", "DIR", "--risk", "0.3", "--json"],
    "calibrate": ["calibrate", "DIR", "--mc-dropout", "0", "--json"],
}
DESCRIBE = {"caption": ["caption", "DIR", "--features", "data/features.npy", *PICTURES,
                        "--beam", "2", "--json"]}
BEYOND = {"check": LOOK["check"], DOOR: LOOK[DOOR]}
ONLY_RESUME = {"resume": LOOK["resume"], "show": LOOK["show"], "check": LOOK["check"]}
RARE = ("report", "resume")
"""Commands that take seconds: asked once where others are asked ten times."""
COMMANDS: dict[str, dict[str, list[str]]] = {
    "bytes": LOOK | READ, "plateau": LOOK | READ, "words": LOOK | READ, "chains": LOOK | READ,
    POOLED: LOOK | READ, f"{POOLED}-shared": BEYOND,
    STUDENT: {name: words for name, words in (LOOK | READ).items() if name != "diagnose"},
    "questions": LOOK | SORT, "captions": LOOK | DESCRIBE,
    **dict.fromkeys(HALF, ONLY_RESUME), **{f"{name}-shared": BEYOND for name in SHARED},
}
COMMANDS |= {name: COMMANDS[name.removeprefix("old-")] for name in OLD}
COMMANDS["old-student"] = {name: words for name, words in COMMANDS[STUDENT].items()
                           if name != "resume"}  # its teacher was elsewhere
assert set(RECIPES) <= set(COMMANDS)
TIMES = re.compile(r"seconds|^time$|_at$|per_second|^host$|since")
"""Keys whose values are measured anew each time."""
SAID = re.compile(r"was edited since|was chosen among other samples|No diagnosis: "
                  r"|more are listed but not there"
                  r"|sample \S+ (was changed|is listed but not|is something|cannot be)")
"""Of a recipe that is no longer that of the beginning; of a choice of another run; of a chain that
cannot be diagnosed, on the page of a report; of samples that `resume` and `show` need not read."""
OURS_TO_DELETE = ("checkpoint.safetensors", "collection.json", "decision.json")
"""Refusals say to delete them: what they held is then made anew, or done without."""

LAWFUL = ("refused", "same", "told", "forged", "old")
"""`told`: another answer, and it is said why; `forged`: a forged file was believed; `old`: one of a
version without checksums gave another answer."""
UNLAWFUL = ("crashed", "different", "wrote")
STRANGER = "not langevin's, not looked at"


@dataclass(frozen=True)
class Case:
    """One file of one folder, damaged in one way, and the command that meets it."""

    number: int
    folder: str
    file: str
    mutation: str
    command: str

    def __str__(self) -> str:
        return f"{self.number}: {self.command} on {self.folder}/{self.file} after {self.mutation}"


@dataclass(frozen=True)
class Outcome:
    """`verdict` is one of LAWFUL or of UNLAWFUL."""

    verdict: str
    detail: str = ""

    @property
    def lawful(self) -> bool:
        return self.verdict in LAWFUL


class Court:
    """Sound folders and what they answer, each asked once; judges cases by number."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.seed = root, seed
        self.known: dict[tuple[str, str], Any] = {}

    def case(self, number: int) -> Case:
        """A function of the seed and the number."""
        rng = random.Random(f"{self.seed}:{number}")
        folder = rng.choice(sorted(COMMANDS))
        names = sorted(COMMANDS[folder])
        command = rng.choice(names)
        if command in RARE and rng.random() < 0.9 and not folder.startswith("half"):
            command = rng.choice(names)
        files = [name for name, content in tree(self.root / folder).items()
                 if not name.endswith("/") and content]
        forged = rng.random() < 0.15
        mutation = rng.choice(FORGERY if forged else DAMAGE).__name__
        return Case(number, folder, rng.choice(files), mutation, command)

    def judge(self, case: Case) -> Outcome:
        """Damage a copy, ask, and compare with the sound answer."""
        expected = self.sound(case.folder, case.command)
        rng = random.Random(f"{self.seed}:{case.number}:bytes")
        mutate = {m.__name__: m for m in (*DAMAGE, *FORGERY)}[case.mutation]
        with copied(self.root, case.folder, self.root.parent / "place") as folder:
            place = folder.parent
            mutate(place / case.folder / case.file, rng)
            before = outside(place, case.folder)
            answer, found = put(case.command, case.folder, place)
            after = outside(place, case.folder)
        if answer.crash:
            return Outcome("crashed", answer.crash)
        if before != after:
            changed = sorted(name for name in before.keys() | after.keys()
                             if before.get(name) != after.get(name))
            return Outcome("wrote", ", ".join(changed))
        if answer.code == 2 and answer.said + answer.printed:
            return Outcome("refused", answer.said.strip()[-300:])
        if answer.code == 0 and found == expected:
            return Outcome("same")
        deleted = case.mutation == "vanish" and case.file.endswith(OURS_TO_DELETE)
        if deleted or SAID.search(answer.said + str(found)):
            return Outcome("told")
        if case.mutation in {m.__name__ for m in FORGERY}:
            return Outcome("forged")
        if case.folder.startswith("old-"):
            return Outcome("old")
        return Outcome("different", f"exit code {answer.code}, {answer.said[-500:]}\n"
                                    f"{difference(expected, found)}")

    def sound(self, folder: str, command: str) -> Any:
        """What the undamaged folder answers."""
        key = (folder, command)
        if key not in self.known:
            with copied(self.root, folder, self.root.parent / "place") as path:
                answer, found = put(command, folder, path.parent)
            if answer.code and not (command == "check" and answer.code == 2):
                raise AssertionError(f"{command} of the sound {folder}: {answer}")
            self.known[key] = found
        return self.known[key]


def put(command: str, folder: str, place: Path) -> tuple[Answer, Any]:
    """Ask; the answer, and all in it that must be the same each time."""
    words = [folder if word == "DIR" else word for word in COMMANDS[folder][command]]
    answer = ask_door(folder) if command == DOOR else ask(*words)
    found: list[Any] = [told(answer.printed)]
    if command == "check" and isinstance(found[0], dict):  # files of others are listed
        found[0]["files"] = [f for f in found[0]["files"] if f["said"] != STRANGER]
    if answer.code == 0 and command == "export":
        found.append(tree(place / "out"))
    if answer.code == 0 and command == "report":
        found = [without_times((place / "page.html").read_text("utf-8"))]
    if answer.code == 0 and command == "resume":
        found.append({name: content for name, content in tree(place / folder).items()
                      if re.search(r"samples/\d*[1-9]\d*\.safetensors$", name)})
    return answer, found


def told(printed: str) -> Any:
    """JSON without what is measured anew each time, or the text as it is."""
    try:
        return timeless(json.loads(printed))
    except ValueError:
        return printed


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if not TIMES.search(key)}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def without_times(page: str) -> str:
    return re.sub(r"\d+(\.\d+)? (s|min|h)\b|\d{4}-\d\d-\d\d[ T][\d:]+", "TIME", page)


def outside(place: Path, folder: str) -> dict[str, bytes]:
    """All but the folder itself and what the command was asked to write."""
    own = (f"{folder}/", "out/", "page.html")
    return {name: content for name, content in tree(place).items() if not name.startswith(own)}


def difference(expected: Any, found: Any, where: str = "") -> str:
    """The first place at which two answers differ."""
    if type(expected) is type(found) and isinstance(expected, dict):
        for key in sorted(expected.keys() | found.keys(), key=str):
            if expected.get(key) != found.get(key):
                return difference(expected.get(key), found.get(key), f"{where}/{key}")
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            if one != other:
                return difference(one, other, f"{where}/{number}")
    return f"{where}: {str(expected)[:300]} became {str(found)[:300]}"
