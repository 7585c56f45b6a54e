"""Bars show what is done of what there is; silence is the default."""

from langevin.process import SILENT
from langevin.report.progress import Bars, TrainingProgress
from langevin.training.session import start


def test_nothing_is_said_unless_bars_are_made(capsys):
    SILENT.begin(3, "images")()
    assert capsys.readouterr() == ("", "")


def test_each_piece_of_work_has_a_bar_with_its_parts():
    with Bars() as progress:
        progress.begin(4)
        advance = progress.begin(2, "images")
        advance()
        found = [(t.description, t.completed, t.total) for t in progress.lines.tasks]
    assert found == [("samples", 0, 4), ("images", 1, 2)]


def test_a_quiet_bar_writes_nothing(capsys):
    with Bars(quiet=True) as progress:
        progress.begin(2)()
    assert capsys.readouterr() == ("", "")


def test_the_name_of_a_run_may_be_in_brackets():
    bar = TrainingProgress("[/s]").bar
    bar.add_task("[/s]", total=1, text="")
    assert bar.columns[0].render(bar.tasks[0]).plain == "[/s]"


def test_no_time_is_foretold_before_a_step_was_timed(tiny, tmp_path):
    trainer, bar = start(tiny(), tmp_path / "run"), TrainingProgress("run", quiet=True)
    with bar:
        assert bar.left(trainer) == ""
        trainer.step = 5
        assert bar.left(trainer).endswith(" left")
