"""The compiled kernels: they are made once, for any processor, and everything works without them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import wiseale.kernels
from wiseale.divergences import pairwise as pair_sums
from wiseale.kernels import _ALWAYS, BLOCK, SAMPLES, Native, Widening, _load, native, pairs, programs
from wiseale.kernels.geometry import Operation
from wiseale.networks.same_padding import SameConv, SameConvTranspose
from wiseale.networks.stack import Stack
from wiseale.posterior import Posterior

compiled = pytest.mark.skipif(native().library is None, reason=native().state)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture
def asked_anew(monkeypatch, tmp_path):
    """Ask for the kernels again, in an empty cache folder."""
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    native.cache_clear()
    yield tmp_path
    native.cache_clear()


@needs_compiler
def test_compiled_once(asked_anew):
    assert native().state.startswith("compiled by cc")
    (made,) = (asked_anew / "cache" / "native").iterdir()
    before = made.stat().st_mtime_ns
    native.cache_clear()
    assert native().library is not None
    assert [path.stat().st_mtime_ns for path in made.parent.iterdir()] == [before]


@needs_compiler
def test_two_processes_at_once(asked_anew):
    command = [sys.executable, "-c", "from wiseale.kernels import native; print(native().state)"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert all(process.communicate()[0].startswith("compiled by cc") for process in running)
    assert len(list((asked_anew / "cache" / "native").iterdir())) == 1


def script(folder: Path, text: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("compiler", "state"),
    [
        ("echo version", "not used: "),  # succeeds and writes nothing
        ("echo version; test $1 = --version", "not used: compiler cannot compile kernels.c"),
        ("exit 1", "not used: Command"),
    ],
    ids=["writes nothing", "refuses", "broken"],
)
def test_a_compiler_that_does_not_work(asked_anew, monkeypatch, compiler, state):
    monkeypatch.setenv("CC", script(asked_anew, compiler))
    assert native().library is None
    assert native().state.startswith(state)
    assert "\n" not in native().state


@needs_compiler
def test_a_damaged_library_is_made_again(asked_anew):
    native()
    (made,) = (asked_anew / "cache" / "native").iterdir()
    size = made.stat().st_size
    made.unlink()  # another file in its place: this process has the old one mapped
    made.write_bytes(b"")
    code = "from wiseale.kernels import native; print(native().state)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("compiled by cc")
    assert made.stat().st_size == size


def test_no_home(asked_anew, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(wiseale.kernels, "cache_root", nowhere)
    assert native() == Native(None, "not used: Could not determine home directory.")


@compiled
def test_sizes_written_down_twice_agree():
    sizes = torch.zeros(3, dtype=torch.int64)
    native().library.wiseale_sizes(sizes.data_ptr())
    assert sizes.tolist() == [BLOCK, SAMPLES, len(Operation._fields)]


@compiled
def test_widening_ignores_defaults():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        made = Widening(torch.full((2, 3), 255, dtype=torch.uint8), 1 / 255)(torch.tensor([1]))
    finally:
        torch.set_default_dtype(before)
    assert made.dtype == torch.float32
    assert made.tolist() == [[1.0] * 3]


def test_no_compiler(asked_anew, monkeypatch):
    monkeypatch.setenv("PATH", str(asked_anew))
    assert native() == Native(None, "not used: no C compiler found")


def test_switched_off(asked_anew, monkeypatch):
    monkeypatch.setenv("WISEALE_NATIVE", "0")
    assert native() == Native(None, "not used: $WISEALE_NATIVE is 0")


def test_a_cache_folder_that_cannot_be_written(asked_anew, monkeypatch):
    (asked_anew / "file").touch()
    monkeypatch.setenv("WISEALE_CACHE", str(asked_anew / "file"))
    assert native().library is None
    assert native().state.startswith("not used: ")


def features() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""


@needs_compiler
@pytest.mark.parametrize(
    "flags",
    [
        ("-O1", "-fopenmp"),
        ("-O3",),
        pytest.param(
            ("-O3", "-mavx2", "-mfma"),
            marks=pytest.mark.skipif("avx2" not in features(), reason="this processor has no AVX2"),
        ),
    ],
    ids=["any processor", "one thread", "AVX2"],
)
def test_other_processors(flags, tmp_path, monkeypatch):
    """Registers of other lengths, other numbers of rows at a time."""
    path, source = tmp_path / "kernels.so", Path(wiseale.kernels.__file__).with_name("kernels.c")
    subprocess.run(["cc", *_ALWAYS, *flags, source, "-o", path], check=True)
    library = _load(path)
    assert library.wiseale_is_parallel() == ("-fopenmp" in flags)
    monkeypatch.setattr(programs, "native", lambda: Native(library, "compiled"))
    torch.manual_seed(0)  # with other weights a sum near zero may fall on either side of the ReLU
    stack = Stack(SameConv(1, 16, 4, 2, (17, 20)), nn.ReLU(), SameConvTranspose(16, 3, 5, 2, (9, 10)))
    (run,) = stack.parts()
    x = torch.randn(37, 1, 17, 20, generator=torch.Generator().manual_seed(0))
    ours = torch.autograd.grad(run(x).square().sum(), stack.parameters())
    layers = nn.Sequential(*stack)
    theirs = torch.autograd.grad(layers(x).square().sum(), stack.parameters())
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4 * b.abs().max().item())

    monkeypatch.setattr(pairs, "native", lambda: Native(library, "compiled"))
    double = Posterior(torch.randn(48, 5, dtype=torch.float64).requires_grad_(), torch.rand(48, 5).double() + 0.1)
    single = Posterior(double.mu.detach().float().requires_grad_(), double.sigma.float())
    (found,), (expected,) = (
        torch.autograd.grad(pair_sums.log_mean_pairs(q, pair_sums.BHATTACHARYYA).sum(), q.mu) for q in (single, double)
    )
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)

    monkeypatch.setattr(wiseale.kernels, "native", lambda: Native(library, "compiled"))
    rows = torch.randint(0, 256, (9, 300), dtype=torch.uint8)
    assert torch.equal(Widening(rows, 1 / 255)(torch.tensor([8, 2])), rows[[8, 2]].float().mul_(1 / 255))


@compiled
@pytest.mark.parametrize("shape", [(50, 3, 9, 7), (50, 64), (50, 1), (50, 0), (50, 12288)])
@pytest.mark.parametrize("threads", [1, 2])
def test_widening_is_exact(shape, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rows = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    chosen = torch.tensor([49, 0, 7, 7, 3])
    made = Widening(rows, 1 / 255)(chosen)
    assert torch.equal(made, rows[chosen].float().mul_(1 / 255))
    assert Widening(rows, 1 / 255)(chosen[:0]).shape == (0, *shape[1:])


@compiled
@pytest.mark.parametrize("wrong", [50, -1])
def test_rows_that_are_not_there(wrong):
    with pytest.raises(IndexError, match="there are 50"):
        Widening(torch.zeros(50, 3, dtype=torch.uint8), 1.0)(torch.tensor([0, wrong]))


def test_kernels_are_part_of_the_package():
    assert os.path.getsize(Path(wiseale.kernels.__file__).with_name("kernels.c")) > 0
