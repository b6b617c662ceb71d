"""Codes of many files: every row once, equal to one process, whatever is killed in between."""

import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.commands import run

from wiseale import AutoEncoder, load
from wiseale.models.files import embed_archive, list_shards, make_request
from wiseale.platform.locks import reserved
from wiseale.processes.engines import local_engine

COLUMNS = ("a", "b", "c")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(128, 3)), columns=COLUMNS)
    path = tmp_path_factory.mktemp("model") / "model"
    AutoEncoder(latent_dim=2, network="mlp:hidden=8", max_epochs=1, random_state=0).fit(rows).save(path)
    return path


def write_shards(folder, count, rows=50):
    """Parquet files with an identifier that says where a row came from."""
    folder.mkdir()
    values = np.random.default_rng(1).normal(size=(count, rows, 3))
    for number in range(count):
        table = pa.table({name: values[number, :, k] for k, name in enumerate(COLUMNS)})
        pq.write_table(table, folder / f"part-{number:03d}.parquet")
    return values


def read_codes(folder, count):
    tables = [pq.read_table(folder / f"part-{number:03d}.parquet") for number in range(count)]
    return np.stack([np.stack([table["z1"].to_numpy(), table["z2"].to_numpy()], axis=1) for table in tables])


def expected(model, values):
    codes = load(model).transform(pd.DataFrame(values.reshape(-1, 3), columns=COLUMNS))
    return codes.reshape(*values.shape[:2], 2).astype(np.float32)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="kills a process")
def test_killed_in_the_middle_and_continued_every_row_is_there_once(tmp_path, model):
    values = write_shards(tmp_path / "shards", 60, rows=2000)
    command = [sys.executable, "-m", "wiseale", "embed", str(model), str(tmp_path / "shards" / "*.parquet")]
    first = subprocess.Popen([*command, "-o", str(tmp_path / "codes")])
    while not (tmp_path / "codes" / "part-002.parquet").exists():
        assert first.poll() is None
        time.sleep(0.005)
    first.kill()
    first.wait()
    done = sorted((tmp_path / "codes").glob("*.parquet"))
    assert 3 <= len(done) < 60
    stamps = [path.stat().st_mtime_ns for path in done]
    again = subprocess.run([*command, "-o", str(tmp_path / "codes")], capture_output=True, text=True, check=True)
    assert f"({len(done)} were there before)" in again.stdout
    assert [path.stat().st_mtime_ns for path in done] == stamps
    others = {path.name for path in (tmp_path / "codes").iterdir() if path.suffix != ".parquet"}
    assert others == {"archive.json", ".lock"}  # nothing temporary is left
    np.testing.assert_array_equal(read_codes(tmp_path / "codes", 60), expected(model, values))


@pytest.mark.long
def test_a_cluster_writes_the_same(tmp_path, model, capsys):
    values = write_shards(tmp_path / "shards", 6)
    pattern = tmp_path / "shards" / "*.parquet"
    code, printed, _ = run(capsys, "embed", model, pattern, "-o", tmp_path / "codes", "--cluster", "local:2")
    assert code == 0
    assert "6 of 6 files, 300 rows" in printed
    np.testing.assert_array_equal(read_codes(tmp_path / "codes", 6), expected(model, values))


def test_the_tasks_of_an_array_write_every_file_once(tmp_path, model, capsys):
    values = write_shards(tmp_path / "shards", 5)
    arguments = ("embed", model, tmp_path / "shards" / "*.parquet", "-o", tmp_path / "codes")
    (tmp_path / "codes").mkdir()
    with reserved(tmp_path / "codes"):
        for task, files in (("2/2", 2), ("1/2", 3)):
            code, printed, _ = run(capsys, *arguments, "--job", task)
            assert (code, f"{files} of {files} files, {50 * files} rows" in printed) == (0, True)
        code, _, error = run(capsys, *arguments)
        assert (code, "in use by another process" in error) == (2, True)
    code, printed, _ = run(capsys, *arguments)
    assert (code, "(5 were there before)" in printed) == (0, True)
    np.testing.assert_array_equal(read_codes(tmp_path / "codes", 5), expected(model, values))


def test_what_a_killed_writer_left_is_removed(tmp_path, model):
    write_shards(tmp_path / "shards", 1)
    (shard,) = list_shards(str(tmp_path / "shards" / "*.parquet"), tmp_path / "codes")
    (tmp_path / "codes").mkdir()
    (tmp_path / "codes" / ".part-000.parquet.partial-99-ff").touch()
    with local_engine(1) as engine:
        request = make_request(model, sigma=False, error=False, unseen="error")
        assert embed_archive([shard], request, engine, lambda done, total: None)[0] == 50
    assert [path.name for path in (tmp_path / "codes").iterdir()] == ["part-000.parquet"]


def test_a_bad_shard_does_not_stop_the_others_and_a_changed_one_is_written_again(tmp_path, model, capsys):
    write_shards(tmp_path / "shards", 3)
    (tmp_path / "shards" / "part-001.parquet").write_bytes(b"not Parquet")
    arguments = ("embed", model, tmp_path / "shards" / "*.parquet", "-o", tmp_path / "codes", "--sigma", "--error")
    code, printed, _ = run(capsys, *arguments)
    assert code == 1
    assert "part-001.parquet failed: " in printed
    assert "2 of 3 files, 100 rows" in printed
    good = (tmp_path / "shards" / "part-000.parquet").read_bytes()
    (tmp_path / "shards" / "part-001.parquet").write_bytes(good)
    os.utime(tmp_path / "shards" / "part-002.parquet")
    os.utime(tmp_path / "codes" / "part-002.parquet", (0, 0))
    code, printed, _ = run(capsys, *arguments)
    assert (code, "2 of 3 files, 100 rows" in printed) == (0, True)
    found = pq.read_table(tmp_path / "codes" / "part-001.parquet")
    assert found.column_names == ["z1", "z2", "sigma1", "sigma2", "error"]


def test_files_keep_their_place_below_the_pattern(tmp_path, model, capsys):
    for day in ("mon", "tue"):
        (tmp_path / "in" / day).mkdir(parents=True)
        np.save(tmp_path / "in" / day / "x.npy", np.ones((4, 3)))
    code, _, _ = run(capsys, "embed", model, tmp_path / "in" / "*" / "x.npy", "-o", tmp_path / "codes")
    assert code == 0
    assert np.load(tmp_path / "codes" / "tue" / "x.npy").shape == (4, 2)


def test_what_cannot_be_is_refused(tmp_path, model, capsys):
    np.save(tmp_path / "x.npy", np.ones((4, 3)))
    pattern = tmp_path / "*.npy"
    for arguments, told in (
        ((tmp_path / "no" / "*.npy", "-o", tmp_path / "codes"), "no file matches"),
        ((pattern, "-o", tmp_path / "codes.npz"), "give a folder"),
        ((pattern, "-o", tmp_path), "is a file to be read"),
        ((tmp_path / "x.npy", "-o", tmp_path / "codes.npz", "--cluster", "local:2"), "--cluster is for several files"),
    ):
        code, _, error = run(capsys, "embed", model, *arguments)
        assert (code, told in error) == (2, True), error
    assert run(capsys, "embed", model, pattern, "-o", tmp_path / "codes")[0] == 0
    code, _, error = run(capsys, "embed", model, pattern, "-o", tmp_path / "codes", "--sigma")
    assert (code, "with other --sigma" in error) == (2, True)
