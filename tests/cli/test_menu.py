"""The command starts without torch and without its commands; its help shows all, in groups."""

import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest

import langevin
from langevin.cli.menu import ELSEWHERE, MENU

# pydantic is what typer itself reads options by
HEAVY = {"torch", "numpy", "numba", "rich", "sklearn"}
OURS = {f"langevin.cli.{name}" for name in [*MENU, *ELSEWHERE.values(), "app", "outcome"]}
COMMANDS = [name for commands in MENU.values() for name in commands]
RUN = """
import atexit, sys
sys.argv[0] = "langevin"
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from langevin.cli import main
main()
"""


def run(*arguments, **environment):
    """What the command prints in a process of its own, and the modules it has at its end."""
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True,
                          env=os.environ | environment, check=True)
    return done.stdout, set(done.stderr.split())


def complete(line):
    """As bash asks when its user presses the tabulator key at the end of a line."""
    words = {"COMP_WORDS": f"langevin {line}", "COMP_CWORD": str(len(line.split()))}
    return run(_LANGEVIN_COMPLETE="complete_bash", **words)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []])
def test_the_start_is_cheap(arguments):
    _, modules = run(*arguments)
    assert "langevin.cli.menu" in modules
    assert not modules & (HEAVY | OURS)


@pytest.mark.parametrize(("line", "expected"), [("unc", "uncertainty"), ("show ru", "")])
def test_completing_is_cheap(line, expected):
    printed, modules = complete(line)
    assert printed.split() == expected.split()
    assert not modules & (HEAVY | OURS)


def test_options_are_completed():
    printed, modules = complete("recipes --")
    assert printed.split() == ["--json", "--help"]
    assert "langevin.cli.look" in modules


def test_importing_langevin_imports_nothing_else():
    code = "import sys, langevin; print(*sys.modules)"
    modules = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert {"langevin", "langevin.errors"} <= modules
    assert not modules & HEAVY


def test_every_public_name_is_there():
    for name in langevin.__all__:
        assert vars(langevin).get(name) or langevin.__getattr__(name), name
    assert set(langevin.__all__) <= set(dir(langevin))
    with pytest.raises(AttributeError, match="no attribute 'PSGDL'"):
        langevin.PSGDL  # noqa: B018


def test_help_shows_all_commands_in_groups(cli):
    code, printed, _ = cli("--help")
    assert code == 0
    headings = [line.rstrip(":") for line in printed.splitlines() if line.endswith(":")]
    assert headings == ["Options", *MENU]
    shown = [line.split()[0] for line in printed.splitlines() if line.startswith("  ")]
    assert [name for name in shown if name in COMMANDS] == COMMANDS


def test_alone_it_says_where_to_begin(cli):
    code, printed, _ = cli()
    assert code == 0
    assert "langevin train --text my.txt" in printed
    assert len(printed.splitlines()) < 12


def test_every_command_is_on_the_menu():
    """And stands where the menu says, in the module of its group or one of its own."""
    places = {name: ELSEWHERE.get(name, group) for group, names in MENU.items() for name in names}
    for place in set(places.values()):
        app = import_module(f"langevin.cli.{place}").app
        there = {command.callback.__name__ for command in app.registered_commands}
        assert there == {name for name, where in places.items() if where == place}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_ends_with_an_example(cli, name):
    code, printed, _ = cli(name, "--help")
    assert code == 0
    heading, line = printed.rstrip().splitlines()[-2:]
    assert heading.strip() == "Example:"
    assert line.strip().startswith(f"langevin {name}")


def test_a_misspelt_command_is_told(cli):
    code, _, messages = cli("evalute")
    assert code == 2
    assert "Did you mean 'evaluate'" in messages


def test_the_two_versions_agree():
    assert langevin.__version__ == version("langevin")
