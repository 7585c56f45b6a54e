"""Commands of classifiers, from training to figures; bad input ends with exit code 2, clear words,
nothing lost."""

import csv
import json
import shutil

import pytest
from matplotlib.image import imread

from langevin.predict.answers import ACCEPT
from langevin.store.folder import DECISIONS, RunFolder
from tests.sentences import TINY_CLASSIFIER, questions, write_questions


@pytest.fixture
def run(classifier_run, tmp_path):
    shutil.copytree(classifier_run, tmp_path / "run")
    return tmp_path / "run"


def test_train_on_own_sentences(cli, tmp_path):
    pairs = [(text, label) for text, label in questions() if label != "place" or "so" not in text]
    train, valid = tmp_path / "my.csv", tmp_path / "valid.csv"
    train.write_text("1,kind\n" + "".join(f"{text},{label}\n" for text, label in pairs))
    valid.write_text("1,kind\n" + "".join(f"{text},{label}\n" for text, label in questions(30, seed=1)))
    settings = [a for override in TINY_CLASSIFIER for a in ("--set", override)]
    arguments = ["train", "--task", "classify", "--train", train, "--valid", valid, "--text-column", "1",
                 "--label-column", "kind", "--out", tmp_path / "own", *settings]
    code, out, said = cli(*arguments)
    assert code == 0, said
    assert "unequal classes: " in said
    assert f"langevin decide {tmp_path / 'own'}" in " ".join(out.split())
    facts = RunFolder(tmp_path / "own").facts
    assert facts["labels"] == ["person", "place", "thing"]
    assert facts["split_sizes"]["valid"] == 30
    assert cli(*arguments)[0] == 2  # nothing is overwritten unasked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "classify"], "expected a recipe or --train FILE"),
        (["--task", "classify", "--train", "FILE", "--label-column", "kind"], "the columns are 'label', 'text'"),
        (["--train", "FILE", "--text", "FILE"], "either --text or --train"),
        (["--task", "caption", "--train", "FILE"], "got --train too, which is for another task"),
        (["text", "--train", "FILE", "--valid", "FILE"], "valid_file"),
    ],
)
def test_train_refuses(cli, tmp_path, arguments, message):
    path = write_questions(tmp_path / "my.csv")
    code, _, said = cli("train", "--out", tmp_path / "own", *(path if a == "FILE" else a for a in arguments))
    assert code == 2
    assert message in said
    assert not (tmp_path / "own").exists()


def test_classify_texts(cli, run):
    code, out, said = cli("classify", run, "where is Rome ?", "", "who was Homer ?", "--json")
    assert code == 0, said
    assert "empty texts: 1" in said
    told = json.loads(out)
    assert [answer["label"] for answer in told["texts"]][::2] == ["place", "person"]
    assert told["texts"][1]["accepted"] is False
    assert (told["items"], told["samples"]) == (3, 4)
    assert told["rule"]["target"] == "coverage"
    assert (run / DECISIONS).exists()
    code, out, _ = cli("classify", run, "where is Rome ?", "--coverage", "1")
    assert "place" in out
    assert ACCEPT in out


def test_classify_a_file(cli, run, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("id,label,text\n1,place,where is Rome ?\n2,animal,what is iron ?\n3,thing,\n")
    target = tmp_path / "deep" / "out.csv"
    code, out, said = cli("classify", run, "--file", source, "--out", target)
    assert code == 0, said
    assert "labels that training never had: 'animal' on 1 of 3 texts" in said
    assert "3 answers in" in out
    assert "accepted: accept by standard deviation, coverage about 0.9" in out
    assert "of 2 (" in out
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["predicted"] == "place"
    assert [row["note"] for row in rows] == ["", "", "empty"]
    before = target.read_bytes()
    code, _, said = cli("classify", run, "--file", source, "--out", target)
    assert (code, "exists" in said) == (2, True)
    assert target.read_bytes() == before
    assert cli("classify", run, "--file", source, "--out", target, "--overwrite")[0] == 0


def test_other_encodings_are_read_and_it_is_said_once(cli, run, tmp_path):
    source = tmp_path / "in.csv"
    source.write_bytes("text\nwhere is Rome – caf\u00e9 ?\n".encode("cp1252"))
    code, out, said = cli("classify", run, "--file", source, "--json")
    assert (code, json.loads(out)["texts"][0]["text"]) == (0, "where is Rome – caf\u00e9 ?")
    assert said.count("cp1252") == 1


def test_classify_labelled_lines(cli, run, tmp_path):
    source = write_questions(tmp_path / "in.txt", questions(60, seed=3))
    code, out, said = cli("classify", run, "--file", source)
    assert "every line" in said
    assert "and 20 more" in out
    code, out, said = cli("classify", run, "--file", source, "--labelled", "--json")
    assert (code, json.loads(out)["labelled"]) == (0, 60)
    assert json.loads(out)["wrong"] < 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either texts or --file FILE, got neither"),
        (["a", "--file", "b"], "got both"),
        (["a", "--risk", "0.00001"], "the least that can is"),
        (["a", "--risk", "2"], "risk must be between 0 and 1"),
        (["a", "--statistic", "entropie"], "did you mean 'entropy'"),
        (["a", "--statistic", "entropy"], "add --risk or --coverage, or leave --statistic out"),
        (["a", "--coverage", "0.9", "--confidence", "0.9"], "add --risk or leave --confidence out"),
        (["a", "--coverage", "1", "--statistic", "standard_deviation", "--samples", "1"], "got one, which has no"),
        (["--file", "absent.csv"], "found nothing"),
        (["a", "--out", "a.xls"], "expected --out to end in"),
    ],
)
def test_classify_refuses(cli, run, arguments, message):
    code, _, said = cli("classify", run, *arguments)
    assert code == 2
    assert message in said
    assert not (run / DECISIONS).exists()


def test_without_the_data_there_are_answers_and_old_rules(cli, classifier_run, tmp_path):
    root = tmp_path / "moved"
    shutil.copytree(classifier_run.parent, root)
    recipe = root / "run" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("corpus.csv", "gone.csv"))
    code, out, said = cli("classify", root / "run", "where is Rome ?", "--json")
    assert (code, json.loads(out)["texts"][0]["accepted"]) == (0, None)
    assert "no decisions: " in said
    assert cli("classify", root / "run", "where is Rome ?", "--risk", "0.3")[0] == 2


def test_decide(cli, run, tmp_path):
    figure = tmp_path / "risk.png"
    code, out, said = cli("decide", run, "--risk", "0.4", "--figure", figure)
    assert code == 0, said
    assert "risk at most 0.4 with confidence 0.95" in out
    assert "held" in out
    assert imread(figure).shape[2] == 4
    code, out, _ = cli("decide", run, "--coverage", "0.8", "--statistic", "entropy", "--json")
    assert json.loads(out)["rule"]["statistic"] == "entropy"
    assert json.loads(cli("classify", run, "Rome", "--json")[1])["rule"]["value"] == 0.8
    code, _, said = cli("decide", run)
    assert (code, "--risk SHARE or --coverage SHARE" in said) == (2, True)


def test_a_promise_that_is_not_exact_says_so(cli, run):
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("[run]\n", "[run]\npatience = 3\n"))
    expected = "the validation sentences also chose when to stop"
    code, out, said = cli("decide", run, "--risk", "0.4")
    assert (code, expected in out) == (0, True), said
    assert expected in json.loads(cli("decide", run, "--risk", "0.4", "--json")[1])["caution"]
    code, out, said = cli("classify", run, "where is Rome ?", "--risk", "0.4", "--json")
    assert (code, expected in said) == (0, True)
    assert expected in json.loads(out)["caution"]
    code, out, said = cli("classify", run, "where is Rome ?", "--coverage", "0.8", "--json")
    assert (code, expected in said, json.loads(out)["caution"]) == (0, False, None)


def test_labels_in_brackets_stand_as_they_are(cli, tmp_path):
    """As in "[neg]", which must not be read as a style, nor ":cat:" as a picture."""
    names = {"place": "[neg]", "person": "[/s]", "thing": ":cat:"}
    corpus = write_questions(tmp_path / "q.csv", [(text, names[label]) for text, label in questions()])
    settings = [a for override in [*TINY_CLASSIFIER, "epochs=1.5"] for a in ("--set", override)]
    run = tmp_path / "[run]"
    code, _, said = cli("train", "--task", "classify", "--train", corpus, "--out", run, *settings)
    assert code == 0, said
    assert all(f"{name} " in said.partition("classes: ")[2] for name in names.values())
    code, out, said = cli("uncertainty", run, "--split", "train", "--top", "40")
    assert code == 0, said
    assert all(name in out for name in names.values())
    assert "[run]" in out


def test_numbers_of_another_split_are_not_compared(cli, run, tmp_path):
    other = tmp_path / "b.json"
    other.write_text(cli("calibrate", run, "--split", "valid", "--mc-dropout", "0", "--json")[1])
    code, _, said = cli("calibrate", run, "--mc-dropout", "0", "--other", other)
    assert (code, "expected numbers of the test split" in said) == (2, True)
    assert cli("calibrate", run, "--split", "valid", "--mc-dropout", "0", "--other", other)[0] == 0


def test_uncertainty_and_calibrate(cli, run, tmp_path):
    code, out, said = cli("uncertainty", run, "--top", "3", "--figure", tmp_path / "u.png")
    assert code == 0, said
    assert "±" in out
    listed = json.loads(cli("uncertainty", run, "--top", "3", "--json")[1])["top"]
    assert len(listed) == 3
    assert {"label", "p", "std", "predicted", "confidence", "confidence_std"} <= set(listed[0])
    code, out, said = cli("calibrate", run, "--other", run, "--outside", run / "recipe.toml", "--figure",
                          tmp_path / "c.png", "--mc-dropout", 2)
    assert code == 0, said
    assert "dropout, 2 masks" in out
    assert "run: average of 4" in out
    assert "told from those of the run" in out
    for name in "uc":
        assert imread(tmp_path / f"{name}.png").std() > 0
    assert cli("uncertainty", run, "--figure", tmp_path / "l.docx")[0] == 2


def test_only_sentences_have_a_map(cli, finished_run, tmp_path):
    code, _, said = cli("uncertainty", finished_run, "--figure", tmp_path / "u.png")
    assert (code, "classif" in said) == (2, True), said
    assert not list(tmp_path.iterdir())
