"""embed, decode and sample on files: the estimator's numbers, streamed; output whole or absent; errors in one line."""

import csv
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.cli.commands import run

from wiseale import AutoEncoder, load
from wiseale.data import array_output, arrays

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) * [1, 10, 0.1, 1000] + [0, 5, 0, 1e6]
NAMES = ["price", "qty", "ratio", "metres, above sea"]


def done(capsys, *arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    return out


def refused(capsys, *arguments):
    """The one line a wrong command answers with; nothing is left behind."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1, err
    return err


def array_in(path, name):
    loaded = np.load(path)
    if path.suffix == ".npy":
        return loaded
    with loaded:
        return loaded[name]


def write_csv(path, x=X, names=NAMES, labels=None):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(["label"] if labels else []), *names])
        for i, row in enumerate(x.tolist()):
            writer.writerow([*([labels[i]] if labels else []), *row])
    return path


@pytest.fixture(scope="module")
def estimator():
    return AutoEncoder(network="mlp:hidden=8", max_epochs=2, random_state=0, latent_dim=3).fit(X)


@pytest.fixture
def model(estimator, tmp_path):
    estimator.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that every file takes many of them."""
    monkeypatch.setattr(arrays, "STREAMED", 500)
    monkeypatch.setattr("wiseale.data.tables.csv_table._BLOCK", 500)
    monkeypatch.setattr("wiseale.data.tables.csv_table._ROWS", 1)
    monkeypatch.setattr("wiseale.models.inference._BLOCK_ROWS", 7)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", ["npy", "npz", "csv"])
@pytest.mark.parametrize("kind", ["npy", "fortran", "npz", "csv", "parquet", "f4", ">f8"])
def test_codes_are_the_estimator_s(capsys, tmp_path, model, estimator, kind, suffix):
    data = tmp_path / f"x.{kind if kind in ('npz', 'csv', 'parquet') else 'npy'}"
    if kind == "csv":
        write_csv(data)
    elif kind == "npz":
        np.savez_compressed(data, x=X)
    elif kind == "parquet":
        parquet.write_table(pa.table(dict(zip(NAMES, X.T, strict=True))), data)
    else:
        np.save(data, np.asfortranarray(X) if kind == "fortran" else X.astype("f8" if kind == "npy" else kind))
    expected = estimator.transform(X.astype("f4") if kind == "f4" else X)
    out = tmp_path / f"codes.{suffix}"
    assert "300 rows, 3 codes each" in done(capsys, "embed", model, data, "-o", out)
    if suffix == "csv":
        read = np.loadtxt(out, delimiter=",", skiprows=1)
        assert out.read_text().startswith("z1,z2,z3\n")
    else:
        read = array_in(out, "codes")
        assert read.dtype == np.float32
    np.testing.assert_array_equal(read.astype("f4"), expected.astype("f4"))
    assert {path.name for path in tmp_path.iterdir()} == {"model", data.name, out.name}


@pytest.mark.parametrize("suffix", ["npz", "csv"])
def test_sigma_and_error_on_request(capsys, tmp_path, model, estimator, suffix):
    np.save(tmp_path / "x.npy", X)
    out = tmp_path / f"codes.{suffix}"
    done(capsys, "embed", model, tmp_path / "x.npy", "-o", out, "--sigma", "--error")
    if suffix == "npz":
        with np.load(out) as read:
            codes, sigma, error = read["codes"], read["sigma"], read["error"]
    else:
        table = np.genfromtxt(out, delimiter=",", names=True)
        codes, sigma = (np.stack([table[f"{name}{k}"] for k in (1, 2, 3)], 1) for name in ("z", "sigma"))
        error = table["error"]
    mu, expected = estimator.posterior(X)
    np.testing.assert_allclose(codes, mu, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(sigma, expected, rtol=1e-6)
    np.testing.assert_allclose(error, estimator.reconstruction_error(X), rtol=1e-6)
    assert error.shape == (300,)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("codes", ["codes.npy", "codes.npz", "codes.csv"])
@pytest.mark.parametrize("out", ["x.npy", "x.npz", "x.csv"])
def test_decode_returns_the_user_s_units(capsys, tmp_path, model, estimator, codes, out):
    np.save(tmp_path / "data.npy", X)
    further = [] if codes.endswith(".npy") else ["--sigma", "--error"]
    done(capsys, "embed", model, tmp_path / "data.npy", "-o", tmp_path / codes, *further)
    done(capsys, "decode", model, tmp_path / codes, "-o", tmp_path / out)
    path = tmp_path / out
    read = np.loadtxt(path, delimiter=",", skiprows=1) if path.suffix == ".csv" else array_in(path, "x")
    expected = estimator.inverse_transform(estimator.transform(X).astype("f4").astype("f8"))
    np.testing.assert_allclose(read, expected, rtol=1e-6)
    assert read.dtype == np.float64


def test_codes_under_any_name(capsys, tmp_path, model, estimator):
    z = RNG.normal(size=(5, 3))
    write_csv(tmp_path / "points.csv", z, ["a", "b", "c"])
    done(capsys, "decode", model, tmp_path / "points.csv", "-o", tmp_path / "x.npy")
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), estimator.inverse_transform(z), rtol=1e-12)
    write_csv(tmp_path / "four.csv", RNG.normal(size=(5, 4)), list("abcd"))
    assert 'no column "z1"' in refused(capsys, "decode", model, tmp_path / "four.csv", "-o", tmp_path / "y.npy")
    for names in (["z0", "z1", "z2"], ["z2", "z3", "z4"]):  # of other units, or of an earlier version
        write_csv(tmp_path / "other.csv", z, names)
        said = refused(capsys, "decode", model, tmp_path / "other.csv", "-o", tmp_path / "y.npy")
        assert 'other.csv has no column "z' in said
    swapped = write_csv(tmp_path / "swapped.csv", z[:, [1, 0, 2]], ["z2", "z1", "z3"])
    done(capsys, "decode", model, swapped, "-o", tmp_path / "x.npy")
    np.testing.assert_allclose(np.load(tmp_path / "x.npy"), estimator.inverse_transform(z), rtol=1e-12)
    np.save(tmp_path / "four.npy", RNG.normal(size=(5, 4)))
    assert "codes have 3 columns" in refused(capsys, "decode", model, tmp_path / "four.npy", "-o", tmp_path / "y.npy")


def test_sample_is_the_estimator_s(capsys, tmp_path, model, estimator):
    done(capsys, "sample", model, "-n", 1500, "-o", tmp_path / "x.npy", "--seed", 7)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), estimator.sample(1500, random_state=7))
    done(capsys, "sample", model, "-n", 10, "-o", tmp_path / "x.npy", "--noise")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), estimator.sample(10, random_state=0, noise=True))
    assert "-n" in refused(capsys, "sample", model, "-n", 0, "-o", tmp_path / "x.npy")


def test_the_model_decides_how_a_file_is_read(capsys, tmp_path):
    """Images that were 0 to 255 in training: a file that happens to hold 0 and 1 only is not taken for a mask."""
    grey = RNG.integers(0, 256, (30, 1, 6, 6)).astype(np.uint8)
    np.save(tmp_path / "grey.npy", grey)
    quick = ["--network", "conv2d:channels=4,hidden=8", "--max-epochs", 1, "--batch-size", 8, "--latent-dim", 2]
    done(capsys, "train", tmp_path / "grey.npy", *quick, "--out", tmp_path / "run")
    np.save(tmp_path / "dark.npy", grey // 255)
    np.save(tmp_path / "same.npy", (grey // 255) / 255)
    for name in ("dark", "same"):
        done(capsys, "embed", tmp_path / "run", tmp_path / f"{name}.npy", "-o", tmp_path / f"{name}_codes.npy")
    dark, same = np.load(tmp_path / "dark_codes.npy"), np.load(tmp_path / "same_codes.npy")
    np.testing.assert_allclose(dark, same, atol=1e-6)
    np.testing.assert_allclose(load(tmp_path / "run").transform(grey // 255), dark, atol=1e-6)
    np.save(tmp_path / "float.npy", grey.astype("f4"))
    message = refused(capsys, "embed", tmp_path / "run", tmp_path / "float.npy", "-o", tmp_path / "codes.npy")
    assert "the model reads 8-bit images" in message
    assert not (tmp_path / "codes.npy").exists()
    channels_last = np.moveaxis(grey, 1, -1)
    np.save(tmp_path / "last.npy", channels_last)
    done(capsys, "embed", tmp_path / "run", f"{tmp_path / 'last.npy'}:channels=last", "-o", tmp_path / "codes.npy")
    done(capsys, "embed", tmp_path / "run", tmp_path / "grey.npy", "-o", tmp_path / "same_codes.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), np.load(tmp_path / "same_codes.npy"))


def test_columns_are_found_by_name_and_others_refused(capsys, tmp_path):
    words = ["even" if i % 2 else "odd" for i in range(len(X))]
    data = write_csv(tmp_path / "sales.csv", labels=words)
    quick = ["--network", "mlp:hidden=8", "--max-epochs", 1, "--batch-size", 8, "--latent-dim", 2]
    done(capsys, "train", f"{data}:labels=label", *quick, "--out", tmp_path / "run")
    assert list(load(tmp_path / "run").feature_names_in_) == NAMES
    codes = {}
    order = [3, 1, 0, 2]
    shuffled = write_csv(tmp_path / "shuffled.csv", X[:, order], [NAMES[i] for i in order])
    for name, spec in {"same": data, "labels": f"{data}:labels=label", "shuffled": shuffled}.items():
        done(capsys, "embed", tmp_path / "run", spec, "-o", tmp_path / "codes.npy")
        codes[name] = np.load(tmp_path / "codes.npy")
    np.testing.assert_array_equal(codes["same"], codes["labels"])
    np.testing.assert_array_equal(codes["same"], codes["shuffled"])
    other = write_csv(tmp_path / "other.csv", X, ["prise", *NAMES[1:]])
    message = refused(capsys, "embed", tmp_path / "run", other, "-o", tmp_path / "codes.npz")
    assert "other.csv has no column \"price\": did you mean 'prise'?" in message
    chosen = f"{shuffled}:columns=1,2,3,4"
    message = refused(capsys, "embed", tmp_path / "run", chosen, "-o", tmp_path / "codes.npz")
    assert 'the model was trained on "price" there' in message
    done(capsys, "decode", tmp_path / "run", tmp_path / "codes.npy", "-o", tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as file:
        assert next(csv.reader(file)) == NAMES


def test_a_table_without_a_header_has_no_names(capsys, tmp_path):
    np.savetxt(tmp_path / "bare.csv", X, delimiter=",")
    quick = ["--network", "mlp:hidden=8", "--max-epochs", 1, "--batch-size", 8, "--latent-dim", 2]
    done(capsys, "train", tmp_path / "bare.csv", *quick, "--out", tmp_path / "run")
    est = load(tmp_path / "run")
    assert not hasattr(est, "feature_names_in_")
    done(capsys, "embed", tmp_path / "run", tmp_path / "bare.csv", "-o", tmp_path / "codes.npy")
    np.testing.assert_allclose(np.load(tmp_path / "codes.npy"), est.transform(X), rtol=1e-6)


def test_a_named_dataset(capsys, tmp_path):
    est = AutoEncoder(network="mlp:hidden=8", max_epochs=1, random_state=0).fit(RNG.normal(size=(20, 1, 16)))
    est.save(tmp_path / "model")
    sine = "sine:n=40,n_test=9,length=16"
    done(capsys, "embed", tmp_path / "model", sine, "-o", tmp_path / "codes.npy")
    assert np.load(tmp_path / "codes.npy").shape == (40, 2)
    done(capsys, "embed", tmp_path / "model", sine, "--split", "test", "-o", tmp_path / "codes.npy")
    assert np.load(tmp_path / "codes.npy").shape == (9, 2)
    assert "rows of shape (1, 8)" in refused(
        capsys, "embed", tmp_path / "model", "sine:n=40,length=8", "-o", tmp_path / "c.npy"
    )
    assert "can only hold a table" in refused(capsys, "sample", tmp_path / "model", "-o", tmp_path / "x.csv")


def test_a_deterministic_encoder_has_no_sigma_to_write(capsys, tmp_path):
    AutoEncoder("wae_mmd", network="mlp:hidden=8", max_epochs=1, random_state=0).fit(X).save(tmp_path / "model")
    np.save(tmp_path / "x.npy", X)
    arguments = ("embed", tmp_path / "model", tmp_path / "x.npy", "-o", tmp_path / "codes.npz")
    assert "deterministic encoder without sigma" in refused(capsys, *arguments, "--sigma")
    done(capsys, *arguments, "--error")


def test_wrong_requests(capsys, tmp_path, model):
    np.save(tmp_path / "x.npy", X)
    data, out = tmp_path / "x.npy", tmp_path / "codes.npy"
    for arguments, message in (
        ((model, data, "-o", tmp_path / "codes.txt"), "must end in .npy, .npz, .csv"),
        ((model, data, "-o", out, "--sigma"), "holds a single array, not codes and sigma: use .npz"),
        ((model, data, "-o", tmp_path / "no" / "codes.npy"), "there is no directory"),
        ((model, data, "-o", data), "is the file to be read"),
        ((model, tmp_path / "gone.npy", "-o", out), "no file"),
        ((tmp_path / "gone", data, "-o", out), "no model at"),
        ((model.parent.parent, data, "-o", out), "manifest"),
        ((model, "sines", "-o", out), "did you mean 'sine'"),
        ((model, data), "Missing option '-o'"),
    ):
        assert message in refused(capsys, "embed", *arguments)
    assert {path.name for path in tmp_path.iterdir()} == {"model", "x.npy"}
    (tmp_path / "folder.npy").mkdir()
    assert "it is a directory" in refused(capsys, "embed", model, data, "-o", tmp_path / "folder.npy")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.where(np.arange(1200).reshape(300, 4) == 1018, np.nan, X), "row 254 of x.npy has NaN in column 2"),
        (np.where(np.arange(1200).reshape(300, 4) == 1018, np.inf, X), "row 254 of x.npy has inf in column 2"),
        (X.astype(complex), "complex"),
        (X[:0], "it is empty"),
        (X[:, 0], "has the shape (300,)"),
        (np.float64(3), "has the shape ()"),
        (X[:, :3], "rows of shape (3,), the model takes (4,)"),
        (X.astype(str), "holds text"),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_data_that_cannot_be_used_leaves_the_old_codes(capsys, tmp_path, model, array, message):
    np.save(tmp_path / "x.npy", array)
    (tmp_path / "codes.npy").write_bytes(b"old")
    assert message in refused(capsys, "embed", model, tmp_path / "x.npy", "-o", tmp_path / "codes.npy")
    assert (tmp_path / "codes.npy").read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"model", "x.npy", "codes.npy"}


def test_damaged_files(capsys, tmp_path, model):
    np.savez(tmp_path / "x.npz", x=X, y=X)
    out = ("-o", tmp_path / "codes.npy")
    assert "holds 2 arrays (x, y)" in refused(capsys, "embed", model, tmp_path / "x.npz", *out)
    assert "holds no array 'z'" in refused(capsys, "embed", model, f"{tmp_path / 'x.npz'}:array=z", *out)
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[len(content) // 4] ^= 1
    (tmp_path / "x.npz").write_bytes(content)
    assert "is damaged" in refused(capsys, "embed", model, f"{tmp_path / 'x.npz'}:array=x", *out)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-5])
    assert "cut short" in refused(capsys, "embed", model, tmp_path / "x.npy", *out)
    path = write_csv(tmp_path / "x.csv")
    path.write_text(path.read_text() + "1,2,,4\n")
    assert "row 301 of x.csv (line 302) has a missing cell" in refused(capsys, "embed", model, path, *out)
    assert not (tmp_path / "codes.npy").exists()


def test_a_full_disk_is_one_line(capsys, tmp_path, model, monkeypatch):
    np.save(tmp_path / "x.npy", X)

    def fail(self, block):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(array_output._NpyFile, "write", fail)
    message = refused(capsys, "embed", model, tmp_path / "x.npy", "-o", tmp_path / "codes.npz")
    assert "cannot write" in message
    assert "No space left on device" in message
    assert {path.name for path in tmp_path.iterdir()} == {"model", "x.npy"}


def test_a_run_that_has_not_finished(capsys, tmp_path, model):
    np.save(tmp_path / "x.npy", X)
    quick = ["--network", "mlp:hidden=8", "--max-epochs", 1, "--batch-size", 8]
    done(capsys, "train", tmp_path / "x.npy", *quick, "--out", tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    message = refused(capsys, "embed", tmp_path / "run", tmp_path / "x.npy", "-o", tmp_path / "codes.npz")
    assert "has not finished" in message


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_file(tmp_path, model):
    """Ten times the rows, the same peak: each in a process of its own."""
    peaks = []
    for n in (50_000, 500_000):
        data = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (n, 4))
        data[:] = 1
        del data
        peaks.append(_peak_megabytes(model, tmp_path / "x.npy", tmp_path / "codes.npz"))
    assert peaks[1] - peaks[0] < 6  # 8 MB go into and 14 MB come out of the larger


def _peak_megabytes(model, data, out):
    code = (
        "import sys, torch; torch.set_num_threads(1)\n"
        "from wiseale.cli import main\n"
        "from wiseale.data import arrays; arrays.STREAMED = 1 << 18\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    command = [sys.executable, "-c", code, "embed", model, data, "-o", out, "--sigma", "--error"]
    shown = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout
    return int(shown.splitlines()[-1]) / 1024
