"""What is refused of a user's table, in words that say where it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import solvable as sv
from solvable.lab.forecast.data import read_table, table

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((60, 3)), RNG.standard_normal(60)


def changed(row, column, value):
    found = X.copy()
    found[row, column] = value
    return found


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        (changed(16, 1, np.nan), Y, "X has 1 missing value, the first in row 17, column '1'"),
        (changed(3, 0, np.inf), Y, "X has 1 infinite value, the first in row 4, column '0'"),
        (X, np.where(np.arange(60) == 5, np.nan, Y), "y has 1 missing value, the first in row 6"),
        (np.column_stack([X, np.ones(60)]), Y, "X is constant in column '3': drop it"),
        (X, np.full(60, 2.0), "y is constant, 2 in every row"),
        (X[:20], Y[:20], "there are 20 rows, too few for a forecast: at least 50 are needed"),
        (X, Y[:50], "X has 60 rows and y has 50"),
        (X[:, 0], Y, "X must have a row for each sample"),
        (X, X, "y must have a number for each sample"),
        ([["a", 1.0]] * 60, Y, "X must hold numbers"),
        (np.ma.array(X, mask=X > 1), Y, "masked array"),
        (X, "price", "the name of one column of X"),
        (X[:, :0], Y, "X has no columns"),
    ],
)
def test_bad_tables(inputs, labels, message):
    with pytest.raises(ValueError, match=message):
        sv.forecast(inputs, labels)


def test_a_data_frame_is_a_table():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(label=Y)
    found = table(frame, "label")
    assert found.columns == ("a", "b", "c") and np.allclose(found.y, Y)
    assert np.allclose(found.X.mean(axis=0), 0) and np.allclose(found.X.std(axis=0), 1)
    with pytest.raises(ValueError, match="X holds text in column 'kind'"):
        table(frame.assign(kind="x"), "label")


def written(path, text):
    path.write_text(text)
    return path


def test_files(tmp_path):
    rows = "\n".join(f"{a:.3f};{b:.3f};{k % 2 == 0};{c:.3f}" for k, (a, b, c) in enumerate(X))
    path = written(tmp_path / "data.csv", f"a;b;odd;price\n{rows}\n")
    inputs, labels, names = read_table(path, "price", drop=["b"])
    assert names == ("a", "odd") and inputs.shape == (60, 2) and np.allclose(labels, X[:, 2], atol=1e-3)
    assert set(inputs[:, 1]) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a,b\n1,2\n", "c", "--target = 'c' is not allowed: --target must be a column of data.csv: 'a', 'b'"),
        ("a,b\n1,2\n3\n", "b", "row 3 of data.csv has 1 entries, and the header 2"),
        ("1,2\n3,4\n", "1", "must be a header"),
        ("a,b\n", "b", "no rows below its header"),
        ("a,b\nx,2\n", "b", "text in column 'a', such as 'x'"),
        ("a,b\n1,red\n", "b", "the target 'b' holds text, such as 'red'"),
    ],
)
def test_bad_files(tmp_path, text, target, message):
    with pytest.raises(ValueError, match=message):
        read_table(written(tmp_path / "data.csv", text), target)


def test_a_file_that_is_not_there_and_one_that_is_no_parquet(tmp_path):
    with pytest.raises(ValueError, match="a file that exists"):
        read_table(tmp_path / "none.csv", "a")
    path = tmp_path / "data.parquet"
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        path.write_bytes(b"PAR1")
        with pytest.raises(ValueError, match="Parquet, which needs pandas"):
            read_table(path, "a")
    else:
        pandas.DataFrame({"a": Y, "b": X[:, 0]}).to_parquet(path)
        assert read_table(path, "a")[2] == ("b",)
