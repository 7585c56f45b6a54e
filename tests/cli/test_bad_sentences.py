"""What is wrong with a file of sentences ends the command with exit code 2, clear words and no
folder."""

import shutil

import pytest

from tests.sentences import TINY_CLASSIFIER, questions, write_questions

SET = [argument for override in [*TINY_CLASSIFIER, "temperature=0.01"] for argument in ("--set", override)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "body,kind\nhello,x\n", "the columns are 'body', 'kind'"),
        ("a.tsv", "text\tlabel\n" + "a\tx\n" * 30, "at least two classes"),
        ("a.csv", "text,label\n" + ",x\n,y\n" * 9, "all 18 are empty"),
        ("a.csv", "", "found none"),
        ("a.jsonl", "{", "not valid JSON"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": "a" "label": 1}', "line 2 of"),
        ("a.jsonl", "[" * 100_000, "nested too deep"),
        ("a.jsonl", '{"text": "bad \\ud83d film", "label": 1}', "half of a surrogate pair"),
        ("a.jsonl", '{"text": "a", "label": {"b": 1}}', "a text or a number in column 'label'"),
        ("a.jsonl", '{"text": "a", "label": NaN}', "row 1 has none"),
        ("a.csv", "text,text,label\na,b,x\n", "'text' more than once"),
        ("a.txt", "x hello\nx there\ny well\ny so\n", "too small: no sentence of 4 is left for test"),
        ("a.txt", "".join(f"word{n} and more\n" for n in range(30)), "labels that repeat"),
    ],
)
def test_bad_files_are_explained(cli, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    code, _, messages = cli("train", "trec-psgld", *SET, "--set", f"corpus={path}", "--out", tmp_path / "run")
    assert code == 2
    assert message in messages
    assert "Traceback" not in messages
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("vectors=word3vec", "found nothing"),
        ("tied=true", "no output words to tie"),
        ("text_column=body", "the columns are 'label', 'text'"),
        ("test_file=absent.csv", "found nothing"),
        ("max_words=0", "greater than or equal to 1"),
        ("level=word", "'level' is a key of recipes for another task"),
        ("text_column=label", "different columns for texts and labels"),
    ],
)
def test_bad_settings_are_explained(cli, tmp_path, override, message):
    path = write_questions(tmp_path / "q.csv")
    out = tmp_path / "run"
    code, _, messages = cli("train", "trec-psgld", *SET, "--set", f"corpus={path}", "--set", override, "--out", out)
    assert code == 2
    assert message in messages
    assert not out.exists()


def test_another_encoding_and_endless_texts_are_said_and_trained_on(cli, tmp_path):
    path = tmp_path / "q.csv"
    pairs = [*questions(60), ("où est " + "la neige " * 50_000, "place"), ("", "thing")]
    path.write_bytes(write_questions(path, pairs).read_text().encode("utf-16"))
    code, printed, messages = cli("train", "trec-psgld", *SET, "--set", f"corpus={path}", "--out", tmp_path / "run")
    assert code == 0, messages
    for said in ("read as utf-16", "1 texts are cut after 512 words", "1 empty texts", "classes: person"):
        assert said in messages
    assert "average of 4 samples" in printed
    code, _, messages = cli("evaluate", tmp_path / "run", "--text", write_questions(tmp_path / "n.csv", [("a", "new")]))
    assert code == 2
    assert "'new', which training never had" in messages


def test_a_data_set_of_sentences_is_no_text_for_a_language_model(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, messages = cli("train", "text", "--set", "corpus=trec")
    assert code == 2
    assert "expected a text for a language model, got the data set trec" in messages


def test_any_letters_in_names_and_texts(cli, tmp_path):
    folder = tmp_path / "dir\N{GRINNING FACE}\x7f"
    folder.mkdir()
    pairs = [(f"{text} \N{GRINNING FACE}", label) for text, label in questions()]
    path = write_questions(folder / "q.csv", pairs)
    code, _, messages = cli("train", "--task", "classify", "--train", path, *SET, "--out", folder / "run", "--quiet")
    assert code == 0, messages
    code, printed, _ = cli("classify", folder / "run", "where is Rome \N{GRINNING FACE}", "--json")
    assert code == 0
    assert "where is Rome" in printed


def test_what_a_text_of_the_command_line_may_not_be(cli, classifier_run, tmp_path):
    classifier_run = shutil.copytree(classifier_run, tmp_path / "run")
    code, _, messages = cli("classify", classifier_run, "caf\udce9", "--out", tmp_path / "a.csv")
    assert code == 2
    assert "a text of the command line in UTF-8, got something else after 'caf'" in messages
    code, _, messages = cli("classify", classifier_run, "where", "--labelled")
    assert code == 2
    assert "columns and labels are those of a file" in messages
    (tmp_path / "a.txt").write_text("where is Rome")
    code, _, messages = cli("classify", classifier_run, "--file", tmp_path / "a.txt", "--label-column", "label")
    assert code == 2
    assert "pass --labelled" in messages


def test_a_terminal_without_the_letters_is_no_reason_to_fail(langevin, classifier_run, tmp_path):
    run = shutil.copytree(classifier_run, tmp_path / "run")
    done = langevin("classify", run, "日本", PYTHONIOENCODING="ascii", PYTHONUTF8="1")
    assert done.returncode == 0, done.stderr


def test_text_instead_of_labelled_sentences(cli, tmp_path):
    path = write_questions(tmp_path / "q.csv")
    code, _, messages = cli("train", "--task", "classify", "--text", path, "--out", tmp_path / "run")
    assert code == 2
    assert "pass them by --train" in messages


def test_a_damaged_origin_is_named(cli, classifier_run, tmp_path):
    run = shutil.copytree(classifier_run, tmp_path / "run")
    (run / "origin.json").write_text("{}")
    code, _, messages = cli("classify", run, "where")
    assert code == 2
    assert "origin.json" in messages
