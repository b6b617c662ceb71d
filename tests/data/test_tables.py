"""People's tables: every way of writing one that is common, and one line for every cell that is no number."""

import csv
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as parquet_files

from wiseale.data.defaults import describe
from wiseale.data.source import load_path
from wiseale.data.tables.csv_form import Form
from wiseale.data.tables.raw import RawColumn
from wiseale.errors import WiseAleError

RNG = np.random.default_rng(5)
HOLES = ":missing=error"
SALES = "price,qty,region\n1.5,2,north\n2.5,3,south\n-1e3,5,north\n"


def written(folder: Path, text: str | bytes, name: str = "sales.csv") -> str:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(folder / name)


def line(spec: str, **options: Any) -> str:
    with pytest.raises(WiseAleError) as caught:
        load_path(spec, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_columns_and_labels_by_name(tmp_path: Path) -> None:
    dataset = load_path(f"{written(tmp_path, SALES)}:columns=qty,price,labels=region")
    assert dataset.space.names == ("qty", "price")
    assert dataset.train.x.tolist() == [[2, 1.5], [3, 2.5], [5, -1000]]
    assert dataset.train.factors["region"].tolist() == ["north", "south", "north"]
    assert (dataset.preset.network, dataset.preset.likelihood) == ("mlp", "gaussian:x_sigma=columns")
    assert dataset.space.scaling == "columns"
    assert dataset.test is None
    assert dataset.name == f"{tmp_path}/sales.csv:columns=qty,price,labels=region"


@pytest.mark.parametrize("settings", ["labels=region", "drop=region", "drop=3", "columns=1,2", "columns=price,qty"])
def test_the_same_columns_said_in_many_ways(tmp_path: Path, settings: str) -> None:
    assert load_path(f"{written(tmp_path, SALES)}:{settings}").space.names == ("price", "qty")


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("a,b\n1,2\n3,4\n", "t.csv", ""),
        ("a,b\r\n1,2\r\n3,4", "t.csv", ""),
        ("\ufeffa,b\n1,2\n3,4\n", "t.csv", ""),
        ("a;b\n1;2\n3;4\n", "t.csv", ""),
        ("a\tb\n1\t2\n3\t4\n", "t.csv", ""),
        ("a\tb\n1\t2\n3\t4\n", "t.tsv", ""),
        ("a|b\n1|2\n3|4\n", "t.csv", ""),
        ("a, b\n 1, 2\n3 ,4\n", "t.csv", ""),
        ('"a","b"\n"1","2"\n"3","4"\n', "t.csv", ""),
        ("a,b\n\n1,2\n\n3,4\n\n\n", "t.csv", ""),
        ("a;b\n1,0;2,0\n3,0;4,0\n", "t.csv", ":decimal=comma"),
        ("a;b\n1;2\n3;4\n", "t.csv", ":separator=semicolon,header=true"),
        ("1,b\n1,2\n3,4\n", "t.csv", ":columns=1,b,header=true"),
        ("0,1\n1,2\n3,4\n", "t.csv", ":header=true"),
        ("a,b,note\n1,2,x\n3,4,y\n", "t.csv", ":drop=note"),
        ('a,b,note\n1,2,"x,\ny"\n3,4,"z ""q"""\n', "t.csv", ":drop=note"),
    ],
)
def test_ways_of_writing_the_same_table(tmp_path: Path, text: str, name: str, settings: str) -> None:
    dataset = load_path(written(tmp_path, text, name) + settings)
    assert dataset.train.x.tolist() == [[1, 2], [3, 4]]


def test_without_a_header_columns_are_numbered(tmp_path: Path) -> None:
    path = written(tmp_path, "5.1,3.5,a\n4.9,3,b\n")
    assert "write sales.csv:header=true or sales.csv:header=false" in line(path)
    dataset = load_path(f"{path}:header=false,labels=3")
    assert dataset.space.names == ("1", "2")
    assert dataset.train.factors["3"].tolist() == ["a", "b"]
    assert len(load_path(written(tmp_path, "1.5,2\n3,4\n5,6\n")).train) == 3


def test_a_header_is_not_taken_for_numbers_nor_numbers_for_a_header(tmp_path: Path) -> None:
    assert "header=true" in line(written(tmp_path, "0,1,2\n4,5,6\n7,8,9\n"))  # as pandas names columns
    years = load_path(written(tmp_path, "mean,2019,2020\n4,5,6\n7,8,9\n"))
    assert years.space.names == ("mean", "2019", "2020")
    assert load_path(f"{written(tmp_path, '0,1,2')}:header=false", training=False).train.x.tolist() == [[0, 1, 2]]


def test_an_unnamed_column_must_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, ",a,b\n5,1,2\n6,3,4\n")
    assert "column 1 of sales.csv has no name" in line(path)
    assert load_path(f"{path}:drop=1").space.names == ("a", "b")
    assert load_path(f"{path}:columns=1,b").space.names == ("1", "b")


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        ("", "", "sales.csv is empty"),
        ("\n \n", "", "sales.csv is empty"),
        ("a,b\n", "", "has no rows"),
        ("a,b\n1,2\n", "", "only 1 row"),
        ("a,b\n1,2\n3\n", "", "line 3 of sales.csv has 1 cell where 2 are expected"),
        ("a,b\n1,2\n3,4,5\n", "", "line 3 of sales.csv has 3 cells where 2 are expected"),
        ("a,b\n1,2\n,4\n", HOLES, 'row 2 of sales.csv (line 3) has a missing cell in column "a": fill or drop it'),
        ("a,b\n1,2\n3,NaN\n", HOLES, 'row 2 of sales.csv (line 3) has a missing cell in column "b": fill or drop it'),
        ("a,b\n1,2\n3,-inf\n", "", 'row 2 of sales.csv (line 3) has -inf in column "b"'),
        ("a,b\n1,2\n3,N/A\n", HOLES, 'has a missing cell in column "b": fill or drop it'),
        ("a,b\n1,\n3,N/A\n", "", 'column "b" is empty, all 2 cells are missing: say b:ignore'),
        ("a,b\n1,2\n3,1e39\n", "", 'has 1e+39, beyond float32, in column "b"'),
        ("a,b\n1,2\n3,1e999\n", "", 'has inf in column "b"'),
        ("a\n1\n\n3\n", "", "line 3 of sales.csv is empty"),
        (SALES, ":kinds=region:number", "row 1 of sales.csv (line 2) has 'north' in column \"region\", not a number"),
        (SALES, ":kinds=qty:binary", 'column "qty" has 3 levels, and binary needs 2: say qty:category'),
        (SALES, ":kinds=price:count", 'column "price" holds numbers from -1000 that are no counts'),
        (SALES, ":kinds=pricé:count", "has no column \"pricé\" to be count: did you mean 'price'?"),
        (SALES, ":kinds=price:money", "column \"price\" cannot be 'money': the kinds are number, binary, category"),
        (SALES, ":kinds=price", "must be of the form price:number,colour:category, got 'price'"),
        (SALES, ":kinds=price:ignore,qty:ignore,region:ignore", "no column of sales.csv is left to learn from"),
        (
            "a,b\n1,2\n3,four\n",
            "",
            "(line 3) has 'four' in column \"b\", which also holds numbers: correct it, or say b:",
        ),
        ("a,b\n1,2\n3,\x1d4\n", "", "(line 3) has '\\x1d4' in column \"b\""),
        ("a;b\n1;2,5\n2;3,5\n", "", "write sales.csv:decimal=comma if that is a number"),
        ('a,b\n"8,008",2\n"1,001",3\n', "", "has '8,008' in column \"a\": write 8008, without thousands separators"),
        ('a,b\n"2,5",2\n"1,001",3\n', "", "write sales.csv:decimal=comma,separator=comma if"),
        ("a;b\n8,008;2\n1,001;3\n", "", "write 8008 if that separates thousands, or sales.csv:decimal=comma if"),
        ("a;b\n1.5;2\n2.5;3\n", ":decimal=comma", "write sales.csv:decimal=point if that is a number"),
        ("a,b\n1,2\n3,£5\n", "", "'£5'"),
        ("a,a\n1,2\n3,4\n", "", 'several columns named "a" (columns 1 and 2)'),
        ("a,b\n1,2\n3,4\n", ":columns=c", 'has no column "c"'),
        ("price,b\n1,2\n3,4\n", ":columns=prise", "did you mean 'price'"),
        ("a,b\n1,2\n3,4\n", ":labels=5", 'has no column "5"'),
        ("a,b\n1,2\n3,4\n", ":drop=a,b", "no column of sales.csv is left"),
        ("a,b\n1,2\n3,4\n", ":separator=space", "separator must be"),
        ("a,b\n1,2\n3,4\n".encode("utf-16"), "", "not UTF-8 text"),
        ("a,ü\n1,2\n3,4\n".encode("latin-1"), "", "not UTF-8 text"),
        (b"a,b\n1,2\n\0\0,4\n", "", "zero bytes"),
        ('a,b\n1,"2\n3,4\n', "", 'row 1 of sales.csv (line 3) has a line break in column "b": a quote'),
        ("a,b\n1,2\n3," + "9" * 200_000 + "\n", "", "not a table of text"),
        (f"a,b\n1,2\n3,{'x' * 500}\n", ":labels=b", "too long for labels"),
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, text: str | bytes, settings: str, said: str) -> None:
    assert said in line(written(tmp_path, text) + settings)


def test_a_bad_cell_far_down_is_named_by_row_and_line(tmp_path: Path) -> None:
    rows = [f"{i},{i * i % 17}" for i in range(200_000)]  # more than one block
    rows[150_000] = "1,nan"
    said = line(written(tmp_path, "\n".join(["price,qty", *rows])) + HOLES)
    assert said.startswith('row 150001 of sales.csv (line 150002) has a missing cell in column "qty"')
    rows[150_000] = "1,2,3"
    assert "line 150002 of sales.csv has 3 cells" in line(written(tmp_path, "\n".join(["price,qty", *rows])))


def test_constant_and_very_narrow_columns_are_kept(tmp_path: Path) -> None:
    dataset = load_path(written(tmp_path, "year,when,b\n2020,1700000000.1,2\n2020,1700000000.2,3\n"))
    assert dataset.train.x.tolist() == [[2020, 1700000000.1, 2], [2020, 1700000000.2, 3]]
    assert "3 columns (1 constant column: year); network" in describe(dataset)


def test_use_forgives_what_learning_cannot(tmp_path: Path) -> None:
    one = load_path(written(tmp_path, "a,b\n7,2\n"), training=False)
    assert one.train.x.tolist() == [[7, 2]]
    assert "no rows" in line(written(tmp_path, "a,b\n"), training=False)


def test_zeros_and_ones_are_bernoulli(tmp_path: Path) -> None:
    dataset = load_path(written(tmp_path, "a,b\n0,1\n1,0\n1,1\n"))
    assert (dataset.preset.likelihood, dataset.space.scaling) == ("bernoulli", "none")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["3", "1", "3"], [3, 1, 3]),
        (["0.5", "1", "2"], [0.5, 1.0, 2.0]),
        (["a", "1", ""], ["a", "1", ""]),
        (["2020_01", "2020_02", "2020_01"], ["2020_01", "2020_02", "2020_01"]),
        (["9" * 30, "1", "1"], [1e30, 1.0, 1.0]),
    ],
)
def test_labels_are_numbers_where_they_all_are(tmp_path: Path, cells: list[str], labels: list[Any]) -> None:
    text = "x,kind\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells))
    assert load_path(f"{written(tmp_path, text)}:labels=kind").train.factors["kind"].tolist() == labels


def test_values_agree_with_numpys_own_reader(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    np.savetxt(path, RNG.normal(size=(500, 7)) * 10.0 ** RNG.integers(-20, 20, 7), delimiter=",")
    np.testing.assert_array_equal(load_path(path).train.x, np.loadtxt(path, delimiter=","))


def test_what_the_csv_module_writes_is_read_back(tmp_path: Path) -> None:
    words = ["plain", 'quo"ted', "com,ma", "semi;colon", "line\nbreak", " space", "tab\t"]
    with open(tmp_path / "words.csv", "w", newline="") as file:
        csv.writer(file).writerows([["x", "word, quoted"], *([i, word] for i, word in enumerate(words))])
    factors = load_path(f"{tmp_path}/words.csv:labels=2").train.factors
    assert factors["word, quoted"].tolist() == [word.strip() for word in words]


def test_memory_grows_by_the_numbers_kept_only(tmp_path: Path) -> None:
    row = ",".join(["0.123456789012345"] * 4 + ["1"] * 16)
    text = "\n".join([",".join(f"c{i}" for i in range(20)), *(row for _ in range(300_000)), row.replace("0.1", "0.2")])
    path = written(tmp_path, text)
    load_path(written(tmp_path, "a,b\n1,x\n2,y\n", "first.csv"))  # what stays allocated is not of the pool below
    before, pool = arrow.default_memory_pool(), arrow.proxy_memory_pool(arrow.default_memory_pool())
    arrow.set_memory_pool(pool)
    tracemalloc.start()
    try:
        load_path(f"{path}:columns=c0,c1,c2,c3")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        arrow.set_memory_pool(before)
    kept = 300_001 * 4 * 8
    assert peak < 2.5 * kept + 16e6  # the file has 34 MB of text, 6 million cells
    assert 1e5 < pool.max_memory() < 16e6


def _number_text() -> st.SearchStrategy[str]:
    digits = st.text("0123456789", min_size=1, max_size=40)
    written_out = st.builds(lambda a, b, e: f"{a}.{b}e{e}", digits, digits, st.integers(-345, 310))
    return st.floats(allow_nan=False).map(repr) | written_out | digits | st.floats(0, 1).map(lambda x: f"{x:.60f}")


@given(st.lists(_number_text(), min_size=1, max_size=50), st.sampled_from(["point", "comma"]))
def test_numbers_are_parsed_as_python_parses_them(cells: list[str], decimal: str) -> None:
    text = [cell.replace(".", ",") for cell in cells] if decimal == "comma" else cells
    numbers, wrong = RawColumn(arrow.array(text), form=Form(";", decimal=decimal)).as_numbers()
    assert wrong is None
    assert numbers.tobytes() == np.array([float(cell) for cell in cells]).tobytes()


@pytest.mark.parametrize("block", [64, 200, 3000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_where_blocks_of_text_end_makes_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, end: str
) -> None:
    """Quotes, line breaks in quotes, empty lines and rows longer than a block, against the csv module."""
    monkeypatch.setattr("wiseale.data.tables.csv_table._BLOCK", block)
    monkeypatch.setattr("wiseale.data.tables.csv_table._ROWS", 1)
    words = ["plain", "with, comma", 'a "quote"', "two\nlines", "", " edge ", "long " * 40, '"', "NA"]
    lines = ["x,word,y"]
    for i in range(400):
        word = str(RNG.choice(words)).replace("\n", end).replace('"', '""')
        lines += [f'{RNG.normal()!r},"{word}",{i % 7}'] + [""] * (i % 50 == 3)
    path = written(tmp_path, end.join(lines) + end)
    dataset = load_path(f"{path}:labels=word")
    with open(path, newline="") as file:
        rows = [row for row in csv.reader(file) if row][1:]
    assert dataset.train.x.tolist() == [[float(x), float(y)] for x, _, y in rows]
    assert dataset.train.factors["word"].tolist() == [word.strip() for _, word, _ in rows]


def test_a_quote_after_a_space_is_one_wherever_it_stands(tmp_path: Path) -> None:
    rows = [f"{i / 7},{i % 3},a" for i in range(60_000)]
    for late in (1, 50_000):
        rows[late] = '0.5, "1", "b, c"'
        factors = load_path(f"{written(tmp_path, chr(10).join(['x,y,word', *rows]))}:labels=word").train.factors
        assert factors["word"][late] == "b, c"


def test_nan_with_a_sign_is_a_missing_cell(tmp_path: Path) -> None:
    x = load_path(written(tmp_path, "a,b\n1,x\n-nan,y\n+NaN,x\n2,y\n")).train.x
    np.testing.assert_array_equal(x[:, 0], [1, np.nan, np.nan, 2])


def test_many_empty_lines_before_the_table(tmp_path: Path) -> None:
    """More than the sample that the form is found in; it took time that grew with their square."""
    assert load_path(written(tmp_path, "\n" * 300_000 + "a,b\n1,2\n3,4\n")).train.x.tolist() == [[1, 2], [3, 4]]


def test_any_text_is_a_table_or_one_line(tmp_path: Path) -> None:
    pieces = ["a", "1", "2.5", ",", ";", "\t", "\n", "\r\n", "\r", '"', " ", "nan", "-", "_", "é", "1e400", "\0", "|"]
    for _ in range(500):
        path = written(tmp_path, "".join(RNG.choice(pieces, RNG.integers(0, 40))))
        try:
            x = load_path(path + str(RNG.choice(["", ":header=true", ":header=false", ":labels=1"]))).train.x
            flawed = np.isinf(x).any()
        except WiseAleError as error:
            flawed = "\n" in str(error)
        assert not flawed


@pytest.fixture
def parquet(tmp_path: Path) -> Any:
    """Writes columns to a Parquet file and gives its path."""

    def write(row_group_size: int | None = None, **columns: Any) -> str:
        parquet_files.write_table(arrow.table(columns), tmp_path / "sales.parquet", row_group_size=row_group_size)
        return str(tmp_path / "sales.parquet")

    return write


def test_parquet_columns_of_every_numeric_type(parquet: Any) -> None:
    import decimal

    path = parquet(
        f=[0.5, 1.5],
        h=np.array([0.25, 4], np.float16),
        i=[1, 2],
        b=[True, False],
        d=arrow.array([decimal.Decimal("1.25"), decimal.Decimal("2.50")]),
        c=arrow.array([7, 8]).dictionary_encode(),
        word=["x", None],
    )
    dataset = load_path(f"{path}:labels=word")
    assert dataset.space.names == ("f", "h", "i", "b", "d", "c")
    assert dataset.train.x.tolist() == [[0.5, 0.25, 1, 1, 1.25, 7], [1.5, 4, 2, 0, 2.5, 8]]
    assert dataset.train.factors["word"].tolist() == ["x", ""]


def test_parquet_batches_are_in_order(parquet: Any) -> None:
    x = RNG.normal(size=(150_000, 2)).astype("f4")
    path = parquet(row_group_size=40_000, **{"a": x[:, 0], "b.c": x[:, 1], "n": np.arange(150_000)})
    dataset = load_path(f"{path}:columns=b.c,a,labels=n")
    np.testing.assert_array_equal(dataset.train.x, x[:, ::-1])
    np.testing.assert_array_equal(dataset.train.factors["n"], np.arange(150_000))


def test_parquet_that_cannot_be_used_is_one_line(parquet: Any, tmp_path: Path) -> None:
    assert 'row 2 of sales.parquet (counted from 1) has a missing cell in column "a"' in line(
        parquet(a=[1.0, np.nan], b=[1, 2]) + HOLES
    )
    late = np.arange(100_000.0)
    late[70_000] = np.nan
    assert "row 70001 of sales.parquet" in line(parquet(a=late) + HOLES)
    assert 'has a missing cell in column "b"' in line(parquet(a=[1, 2], b=[1, None]) + HOLES)
    dated = parquet(a=[1, 2], when=np.array(["2020-01-01", "2020-01-02"], "M8[s]"), who=["x", "y"])
    assert 'column "when" holds dates, not a number' in line(f"{dated}:kinds=when:number")
    assert "ignored: when (dates)" in describe(load_path(dated))
    assert "(1 constant column: a)" in describe(load_path(parquet(a=[1, 1], b=[1, 2])))
    assert "has no rows" in line(parquet(a=np.zeros(0)))
    assert 'column "a" holds nested values (list<' in line(parquet(a=[[1], [2]]))
    assert "is not a setting" in line(f"{parquet(a=[1, 2])}:header=true")
    path = Path(parquet(a=RNG.normal(size=1000)))
    whole = path.read_bytes()
    for content in (whole[:-50], whole[:10], b"", b"hello"):
        path.write_bytes(content)
        assert "sales.parquet is damaged or not a Parquet file" in line(str(path))


@pytest.mark.parametrize("name", ["x.feather", "x.arrow", "stream.arrow"])
def test_arrow_files(tmp_path: Path, name: str) -> None:
    words = arrow.array(["red", None, "blue", "red"] * 25_000).dictionary_encode()
    x = RNG.normal(size=100_000)
    table = arrow.table({"x": x, "big": np.arange(100_000) + 2**60, "word": words})
    new = arrow.ipc.new_stream if name == "stream.arrow" else arrow.ipc.new_file
    with new(tmp_path / name, table.schema) as file:
        file.write_table(table)
    dataset = load_path(f"{tmp_path}/{name}:kinds=big:number")
    assert [column.kind for column in dataset.space.columns] == ["number", "number", "binary"]
    np.testing.assert_array_equal(dataset.train.x[:, 0], x)
    np.testing.assert_array_equal(dataset.train.x[:4, 2], [0, np.nan, 1, 0])
    whole = (tmp_path / name).read_bytes()
    for content in (whole[:100], whole[: len(whole) // 2], b"", b"hello", b"ARROW1" + bytes(90)):
        (tmp_path / name).write_bytes(content)
        assert f"{name} is damaged" in line(f"{tmp_path}/{name}")


def test_pandas_row_numbers_are_not_features(parquet: Any) -> None:
    assert load_path(parquet(a=[1.0, 2.0], __index_level_0__=[7, 9])).space.names == ("a",)


@pytest.mark.parametrize("header", [True, False])
def test_twenty_thousand_columns(tmp_path, header):
    """Lines of more than 131,072 characters: the sample that is looked at first used to cut them."""
    x = np.random.default_rng(0).normal(size=(3, 20_000)).round(6)
    names = ",".join(f"gene{i:05d}" for i in range(x.shape[1]))
    lines = [names] * header + [",".join(map(repr, row)) for row in x.tolist()]
    assert min(map(len, lines)) > 131_072
    (tmp_path / "genes.csv").write_text("\n".join(lines) + "\n")
    dataset = load_path(str(tmp_path / "genes.csv"))
    assert dataset.space.names[-1] == ("gene19999" if header else "20000")
    np.testing.assert_array_equal(dataset.train.x, x)
