"""Files of texts in all their formats, read one way whoever asks."""

from langevin.data.tables import read_rows
from tests.data.test_prediction_files import write
from tests.data.test_sentences import PAIRS
from tests.data.test_sentences import write as write_pairs


def test_lines_are_texts_or_labels_and_texts(tmp_path):
    source = write(tmp_path / "in.txt", "place where is Rome ?\n\nperson\n")
    assert read_rows(source, "text", None).texts == ["place where is Rome ?", "", "person"]
    labelled = read_rows(source, "text", None, labelled=True)
    assert (labelled.texts, labelled.labels, labelled.free) == (["where is Rome ?", ""], ["place", "person"], False)


def test_lines_of_one_column_stay_apart(tmp_path):
    (tmp_path / "q.tsv").write_text('text\n"one\ntwo"\nthree\n')
    assert read_rows(tmp_path / "q.tsv").texts == ['"one', 'two"', "three"]


def test_texts_alone(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("Who wrote this ?\n\nWhere ?\n")
    assert read_rows(path).texts == ["Who wrote this ?", "", "Where ?"]
    assert read_rows(write_pairs(tmp_path / "q.csv")).texts == [text for text, _ in PAIRS]


def test_blank_lines_are_empty_texts_where_there_is_one_column(tmp_path):
    (tmp_path / "one.csv").write_text("text\na\n\nb\n")
    (tmp_path / "two.csv").write_text("\ntext,id\na,1\n\nb\n")
    assert read_rows(tmp_path / "one.csv").texts == ["a", "", "b"]
    assert read_rows(tmp_path / "two.csv").texts == ["a", "b"]
