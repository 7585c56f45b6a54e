"""Bars show what is done of what there is; silence is the default."""

import shutil

from langevin.process import SILENT
from langevin.report.progress import Bars, ChainsProgress, TrainingProgress
from langevin.store.folder import CHECKPOINT
from langevin.training.chains import start_chains
from langevin.training.session import resume, start


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


def test_a_few_chains_have_a_line_each_and_many_have_one(tiny, tmp_path):
    few, many = (start_chains(tiny(), tmp_path / f"{count}", count) for count in (2, 17))
    resume(few.chains[1].path).run()
    names = [(name, text.split()[0]) for name, _, text in ChainsProgress(few).lines()]
    assert names == [("chain-0", "not"), ("chain-1", "114/114")]
    shutil.copy(few.chains[1].path / CHECKPOINT, many.chains[5].path)
    ((name, progress, text),) = ChainsProgress(many).lines()
    assert (name, text) == ("17 chains", f"114/{17 * 114}  1 finished")
    assert progress is not None
