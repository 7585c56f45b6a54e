"""What users named stands on the screen as they wrote it."""

from langevin.report.terminal import TrainingProgress, messages, screen, table


def test_brackets_and_colons_mean_themselves():
    for console in (screen, messages):
        with console.capture() as shown:
            console.print(table("[title]", ("[red]",), [("[/s] :cat:",)]))
            console.print("classes: [neg] 50%")
        for text in ("[title]", "[red]", "[/s] :cat:", "classes: [neg] 50%"):
            assert text in shown.get()


def test_the_name_of_a_run_may_be_in_brackets():
    bar = TrainingProgress("[/s]").bar
    bar.add_task("[/s]", total=1, text="")
    assert bar.columns[0].render(bar.tasks[0]).plain == "[/s]"
