"""What users named stands on the screen as they wrote it."""

from langevin.report.terminal import messages, screen, table


def test_brackets_and_colons_mean_themselves():
    for console in (screen, messages):
        with console.capture() as shown:
            console.print(table("[title]", ("[red]",), [("[/s] :cat:",)]))
            console.print("classes: [neg] 50%")
        for text in ("[title]", "[red]", "[/s] :cat:", "classes: [neg] 50%"):
            assert text in shown.get()
