"""The rules of the house hold, and each of them can fail."""

import subprocess
from pathlib import Path

import pytest

from tests.house.debts import split_debts
from tests.house.rooms import RANK, ROOT, edges, modules, room
from tests.house.rules import (
    RULES,
    against_the_order,
    cycles,
    defined_twice,
    functions,
    python_files,
)
from tests.house.tree import BESIDE, PAGES, block, printed


def test_every_room_has_its_place_in_the_order():
    assert {room(module) for module in edges()} <= set(RANK), "a new room: give it a place in ORDER"


@pytest.mark.parametrize("rule", RULES)
def test_rule_holds(rule):
    hint, find = RULES[rule]
    _, new, paid = split_debts(rule, find())
    assert not new, f"{hint}: " + ", ".join(new)
    assert not paid, "mended: run python -m tests.house, which takes it from the list of debts"


@pytest.mark.parametrize("page", PAGES)
def test_the_map_of_the_house_is_that_of_the_disk(page):
    shown = printed((ROOT / page).read_text("utf-8"))
    assert shown == block(), "write it anew: python -m tests.house"


def test_what_stands_beside_the_package_is_on_the_map():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git tree here")
    folders = {line.partition("/")[0] for line in listed.stdout.splitlines() if "/" in line}
    assert folders - {"src", ".ci"} == set(BESIDE)


@pytest.fixture
def house(tmp_path: Path):
    def build(**sources: str):
        for name, source in sources.items():
            path = tmp_path / (name.replace("_in_", "/") + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(source)
        return tmp_path

    return build


@pytest.mark.parametrize(
    "source",
    [
        "from ..tasks import base",
        "from ..tasks.base import Task",
        "def late():\n    from ..tasks.base import Task",
        "import langevin.tasks.base",
        "from langevin.tasks.base import Task",
    ],
)
def test_an_edge_against_the_order_is_seen(house, source):
    graph = edges(house(tasks_in_base="", store_in_samples=source))
    assert against_the_order(graph) == {"store.samples -> tasks.base"}


def test_edges_with_the_order_are_allowed(house):
    samples = "import os\nfrom .. import __version__"
    tasks = "from ..store.samples import Sample"
    graph = edges(house(tasks_in_base=tasks, store_in_samples=samples))
    assert graph == {"tasks.base": {"store.samples"}, "store.samples": set()}
    assert not against_the_order(graph)


def test_strangers_are_seen(house):
    graph = edges(house(predict_in_load="", training_in_loop="from ..predict import load"))
    assert against_the_order(graph) == {"training.loop -> predict.load"}


def test_names_of_the_package_are_imports_of_it(house):
    graph = edges(house(data_in_a="from .. import load", __init__=""))
    assert against_the_order(graph) == {"data.a -> __init__"}


def test_a_cycle_is_seen_at_a_distance(house):
    graph = edges(
        house(
            data_in_a="from .b import f", data_in_b="from . import c", data_in_c="from .a import g",
            data_in_d="from .a import h",
        )
    )
    assert cycles(graph) == {"data.a, data.b, data.c"}


def test_names_of_two_are_seen(house):
    classes = "class A: ...\ndef b(): ...\ndef _c(): ..."
    others = "class D:\n    def b(self): ...\nclass A: ...\ndef _c(): ..."
    files = modules(house(data_in_one=classes, data_in_two=others, cli_in_ask=classes))
    assert defined_twice(files) == {"A": ["data.one", "data.two"]}


@pytest.mark.parametrize("lines", [2, 45, 46])
def test_lines_of_a_function_are_counted(lines):
    source = "@cached\ndef f():" + "\n    x = 1" * (lines - 1)
    assert functions(source + "\nclass A:\n    def f(self): ...") == {"f": lines}


def test_all_files_are_read():
    assert {"files.py", "rules.py", "swap.py"} <= {path.name for path in python_files()}
