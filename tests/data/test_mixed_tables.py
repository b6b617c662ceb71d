"""Files with words, dates, nested values and missing cells: what each column is taken for, or refused as."""

import csv
import datetime
from functools import partial

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import parquet

from wiseale.data.defaults import describe, describe_columns
from wiseale.data.source import load_path, open_rows
from wiseale.data.tables.frames import raw_blocks, select_all
from wiseale.data.tables.mixed import encode_column, learn_space
from wiseale.errors import DataError, WiseAleError

N = 60
NUMBERS = np.random.default_rng(0).normal(size=N).round(3)


def csv_file(path, **columns):
    header = ",".join(columns)
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return str(path)


def described(dataset):
    assert dataset.space.missing
    return {column.name: column.kind for column in dataset.space.columns} | dict(dataset.space.ignored)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["", "NA", "."] * 20, '"c".*all 60 cells.*c:ignore'),
        (["x", "3"] * 30, r"row 1 of x.csv \(line 2\) .*'x'.*\"c\".*numbers"),
        ([*range(N - 1), "oops"], r"row 60 of x.csv \(line 61\) .*'oops'.*\"c\".*numbers"),
        (["1;5", "inf"] * 30, "which also holds numbers"),
    ],
)
def test_columns_of_text_that_cannot_be_used_are_one_line(tmp_path, column, message):
    with pytest.raises(DataError, match=message) as caught:
        load_path(csv_file(tmp_path / "x.csv", a=NUMBERS, c=column))
    assert "\n" not in str(caught.value)


def test_ten_thousand_levels(tmp_path):
    words = [f"w{i % 10_000}" for i in range(20_000)]
    path = csv_file(tmp_path / "x.csv", a=np.tile(NUMBERS, 400)[:20_000], c=words)
    assert described(load_path(path)) == {"a": "number", "c": "an identifier or free text"}
    with pytest.raises(DataError, match=r'"c".*1,000 levels.*c:ignore'):
        load_path(f"{path}:kinds=c:category")


def test_levels_of_text_do_not_depend_on_where_reading_blocks_end(tmp_path):
    """Codes such as 007, which read as numbers until row 39,000, in blocks of 32,768 rows."""
    codes = [f"{i % 7:03}" for i in range(40_000)]
    codes[39_000:] = ["E80"] * 1000
    dataset = load_path(csv_file(tmp_path / "x.csv", a=np.arange(40_000) / 7, c=codes) + ":kinds=c:category")
    column = dataset.space.columns[1]
    assert column.levels == ("000", "001", "002", "003", "004", "005", "006", "E80")
    assert [column.levels[int(cell)] for cell in dataset.train.x[:, 1]] == codes


def test_levels_that_are_numbers_are_those_of_their_values(tmp_path):
    path = csv_file(tmp_path / "x.csv", a=NUMBERS, c=["1", "1.0", "2e0"] * 20)
    column = load_path(f"{path}:kinds=c:category").space.columns[1]
    assert column.levels == (1, 2)


@pytest.mark.parametrize(("no", "yes"), [("False", "True"), ("false", "true"), ("FALSE", "TRUE")])
def test_true_and_false_are_the_same_in_a_file_and_in_a_data_frame(tmp_path, no, yes):
    truth = np.arange(N) % 3 == 0
    path = csv_file(tmp_path / "x.csv", a=NUMBERS, flag=np.where(truth, yes, no), word=["x", "y", "z"] * 20)
    frame = pandas.DataFrame({"a": NUMBERS, "flag": truth, "word": ["x", "y", "z"] * 20})
    learned = learn_space(select_all(frame), partial(raw_blocks, frame), {})
    selection, from_frame = learned.chosen, learned.space
    for space in (load_path(path).space, from_frame):
        assert space.columns[1].kind == "binary"
        (cells,) = open_rows(path, space=space).blocks()
        assert np.array_equal(cells[:, 1], truth)
        (block,) = raw_blocks(frame, selection)
        assert np.array_equal(encode_column(space.columns[1], block.columns[1], str), truth)


def test_a_label_is_a_factor_and_not_learned_from(tmp_path):
    words = ["x", "y", "z"] * 20
    path = csv_file(tmp_path / "x.csv", a=NUMBERS, c=words, d=words[::-1])
    numbers = load_path(f"{path}:kinds=c:label,d:label")
    assert (numbers.space.names, numbers.space.missing) == (("a",), False)
    assert numbers.train.factors["c"].tolist() == words
    mixed = load_path(f"{path}:kinds=c:label")
    assert described(mixed) == {"a": "number", "d": "category"}
    assert mixed.train.factors["c"].tolist() == words
    with pytest.raises(DataError, match='no column "q"'):
        load_path(f"{path}:kinds=q:label")


def test_columns_of_the_same_name(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,a\n1,x,3\n4,,6\n")
    with pytest.raises(DataError, match=r'"a" \(columns 1 and 3\)'):
        load_path(f"{tmp_path}/x.csv")


def test_dates_and_titles_are_ignored_in_words(tmp_path):
    titles = [f"film {i}" for i in range(298)] + ["1941", "300"]  # some films have a number for a name
    when = [f"Jun {1 + i % 28} {1970 + i % 30}" for i in range(300)]
    zoned = [f"2020-01-01T{i % 24:02}:00:00+09:00" for i in range(300)]
    path = csv_file(tmp_path / "x.csv", a=np.tile(NUMBERS, 5), title=titles, when=when, zoned=zoned)
    assert described(load_path(path)) == {
        "a": "number",
        "title": "an identifier or free text",
        "when": "dates",
        "zoned": "dates",
    }


@pytest.mark.parametrize("word", [False, True])
@pytest.mark.parametrize(
    ("name", "start", "ignored"),
    [
        ("n", 0, True),
        ("n", 1, True),
        ("time", 2, False),
        ("year", 1700, False),
        ("id", 1000, True),
        ("customer_id", 7, True),
        ("PassengerId", 7, True),
        ("Lfd. Nr.", 7, True),
        ("row", -3, True),
        ("humidity", 7, False),
        ("2", 1, False),  # a number for a name is somebody's choice
    ],
)
def test_row_numbers_start_at_0_or_1_or_are_called_so(tmp_path, name, start, ignored, word):
    """The same rule in tables of numbers alone and in those with words, in files and in frames."""
    columns = {"a": NUMBERS, name: np.arange(start, start + N), "b": NUMBERS**2}
    columns |= {"c": ["x", "y", "z"] * 20} if word else {}
    path = csv_file(tmp_path / "x.csv", **columns)
    dataset = load_path(path)
    assert dataset.space.ignored == (((name, "row numbers"),) if ignored else ())
    assert (name in dataset.space.names) != ignored
    assert (dataset.space.missing) == word
    assert (f"ignored: {name} (row numbers)" in describe(dataset)) == ignored
    asked = load_path(f"{path}:kinds={name}:number")
    assert (asked.space.ignored, name in asked.space.names) == ((), True)
    chosen = load_path(f"{path}:columns={name},a")
    assert chosen.space.names == (name, "a")
    assert (f"{path}:kinds={name}:ignore" and load_path(f"{path}:kinds={name}:ignore").space.ignored) == (
        (name, "as you said"),
    )
    frame = pandas.DataFrame(columns)
    learned = learn_space(select_all(frame), partial(raw_blocks, frame), {})
    assert learned.ignored == dataset.space.ignored
    assert (learned.space is not None) == word


def test_row_numbers_alone_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"x\.csv .*row numbers.*n:number"):
        load_path(csv_file(tmp_path / "x.csv", n=range(N)))
    assert load_path(csv_file(tmp_path / "x.csv", n=range(N)) + ":kinds=n:number").x_shape == (1,)


@pytest.mark.parametrize("word", [False, True])
def test_the_index_that_pandas_writes_is_left_out(tmp_path, word):
    frame = pandas.DataFrame({"a": NUMBERS, "b": NUMBERS**2} | ({"c": ["x", "y", "z"] * 20} if word else {}))
    for rows in (2, N):
        frame[:rows].to_csv(tmp_path / "x.csv")
        dataset = load_path(f"{tmp_path}/x.csv")
        assert dataset.space.names == tuple(frame.columns)
        assert "ignored: 1 (row numbers without a name)" in describe(dataset)
    frame[::2].to_csv(tmp_path / "x.csv")
    with pytest.raises(DataError, match=r"column 1 of x.csv .*x.csv:drop=1"):
        load_path(f"{tmp_path}/x.csv")


def test_names_with_commas_and_colons(tmp_path):
    names = ["bill,len", "a:b", 'say "hi"', "x=y", "plain, too"]
    rows = zip(*([NUMBERS] * 4), np.arange(N) % 3, strict=True)
    with open(tmp_path / "x.csv", "w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    kinds = '"bill,len":number,"a:b":ignore,"say ""hi""":number,"x=y":ignore,"plain, too":category'
    dataset = load_path(f"{tmp_path}/x.csv:kinds={kinds}")
    assert dataset.space.names == ("bill,len", 'say "hi"', "plain, too")
    assert describe_columns(dataset) == (
        '2 numbers ("bill,len", "say ""hi"""), 1 category ("plain, too": 3 levels); '
        'ignored: "a:b" (as you said); "x=y" (as you said)'
    )
    assert load_path(f'{tmp_path}/x.csv:columns="bill,len","a:b",missing=error').space.names == ("bill,len", "a:b")
    assert load_path(f'{tmp_path}/x.csv:drop="bill,len","x=y"').space.names == ("a:b", 'say "hi"', "plain, too")
    with pytest.raises(WiseAleError, match=r"'bill'.*\"bill,len\":"):
        load_path(f"{tmp_path}/x.csv:kinds=bill,len:number")


def test_labels_are_confirmed(tmp_path):
    path = csv_file(tmp_path / "x.csv", a=NUMBERS, b=NUMBERS**2, c=["x", "y", "z"] * 20)
    assert describe_columns(load_path(f"{path}:kinds=c:label")) == "2 numbers (a, b); label: c"
    assert "; label: c;" in describe(load_path(f"{path}:labels=c"))
    assert describe_columns(load_path(f"{path}:labels=c,a")) == "1 number (b); labels: c, a"


def test_durations_are_not_called_dates():
    frame = pandas.DataFrame({"a": NUMBERS, "took": pandas.to_timedelta(NUMBERS, unit="s")})
    for given in (frame, frame.astype({"took": object})):
        learned = learn_space(select_all(given), partial(raw_blocks, given), {})
        assert learned.ignored == (("took", "durations"),)
    with pytest.raises(DataError, match=r'"took" holds durations.*seconds.*ignore'):
        learn_space(select_all(frame), partial(raw_blocks, frame), {"took": "number"})


def test_a_category_of_numbers_with_gaps(tmp_path):
    path = csv_file(tmp_path / "x.csv", a=NUMBERS, code=[1, 2, 99, ""] * 15)
    assert described(load_path(path)) == {"a": "number", "code": "number"}
    asked = load_path(f"{path}:kinds=code:category")
    assert asked.space.columns[1].levels == (1, 2, 99)
    np.testing.assert_array_equal(asked.train.x[:4, 1], [0, 1, 2, np.nan])


def test_parquet(tmp_path):
    tokyo = datetime.timezone(datetime.timedelta(hours=9))
    when = [datetime.datetime(2020, 1, 1 + i % 28, tzinfo=tokyo) for i in range(N)]
    columns = {"a": NUMBERS, "when": pa.array(when, pa.timestamp("us", "Asia/Tokyo")), "word": ["x", None] * 30}
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    assert described(load_path(f"{tmp_path}/x.parquet")) == {"a": "number", "when": "dates", "word": "category"}
    nested = {"list": [[1, 2]] * N, "struct": [{"b": 1}] * N}
    for name, values in nested.items():
        parquet.write_table(pa.table({"a": NUMBERS, name: values}), tmp_path / "n.parquet")
        with pytest.raises(DataError, match=f'"{name}".*nested.*{name}:ignore'):
            load_path(f"{tmp_path}/n.parquet")
        assert load_path(f"{tmp_path}/n.parquet:kinds={name}:ignore").x_shape == (1,)


def test_rare_levels_are_other_where_it_is_asked_for(tmp_path):
    path = csv_file(tmp_path / "x.csv", a=NUMBERS, c=["x"] * 30 + ["y"] * 24 + ["p", "q"] * 3)
    assert load_path(path).space.columns[1].levels == ("p", "q", "x", "y")
    merged = load_path(f"{path}:unseen=other").space
    assert (merged.columns[1].levels, merged.unseen) == (("x", "y", "other"), "other")


def test_words_of_a_frame_may_hold_line_breaks():
    frame = pandas.DataFrame({"a": NUMBERS, "note": ["one\ntwo", "three"] * 30})
    learned = learn_space(select_all(frame), partial(raw_blocks, frame), {})
    assert learned.space.columns[1].levels == ("one\ntwo", "three")


def test_a_cell_with_another_decimal_mark_is_not_placed_in_the_first_row():
    frame = pandas.DataFrame({"a": NUMBERS, "n": ["word"] * (N - 1) + ["5,3"]})
    with pytest.raises(DataError, match="X has '5,3' in column \"n\"") as error:
        learn_space(select_all(frame), partial(raw_blocks, frame), {})
    assert "row 1 " not in str(error.value)
