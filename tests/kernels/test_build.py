"""The kernels are compiled once, for any processor, and everything works without them."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from wiseale import kernels
from wiseale.divergences import pairwise
from wiseale.kernels import build
from wiseale.kernels.build import BASE_FLAGS, SOURCES, Kernels
from wiseale.networks.layers import SameConv, SameConvTranspose
from wiseale.networks.stack import FusedLayers, Stack
from wiseale.posterior import Posterior

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
STATE = [sys.executable, "-c", "from wiseale import kernels; print(kernels.state())"]


@needs_compiler
def test_compiled_once(cache):
    assert kernels.state().startswith("compiled by cc")
    before = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert sorted(path.suffix for path in before) == [".sha256", ".so"]
    build.kernels.cache_clear()
    assert kernels.available()
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir()} == before


@pytest.mark.long
@needs_compiler
def test_processes_that_compile_at_the_same_time(cache):
    running = [subprocess.Popen(STATE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert all(process.communicate()[0].startswith("compiled by cc") for process in running)
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize(
    ("compiler", "state"),
    [
        ("echo version", "not used: "),  # succeeds and writes nothing
        ("echo version; test $1 = --version", "not used: compiler cannot compile the kernels"),
        ("exit 1", "not used: Command"),
    ],
    ids=["writes nothing", "refuses", "broken"],
)
def test_a_compiler_that_does_not_work(cache, tmp_path, monkeypatch, compiler, state):
    path = tmp_path / "compiler"
    path.write_text(f"#!/bin/sh\n{compiler}\n")
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    assert not kernels.available()
    assert kernels.state().startswith(state)
    assert "\n" not in kernels.state()


def test_no_home_folder(cache, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(build, "cache_root", no_home)
    assert build.kernels() == Kernels(None, "not used: Could not determine home directory.")


def test_no_compiler(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build.kernels() == Kernels(None, "not used: no C compiler found")


def test_switched_off(cache, monkeypatch):
    monkeypatch.setenv("WISEALE_NATIVE", "0")
    assert build.kernels() == Kernels(None, "not used: $WISEALE_NATIVE is 0")


def test_a_cache_folder_that_cannot_be_written(cache, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path / "file"))
    assert not kernels.available()
    assert kernels.state().startswith("not used: ")


def compile_sources(folder: Path, *flags: str, change: tuple[str, str, str] | None = None) -> ctypes.CDLL:
    """The library from the sources, or from a copy in which (file, old, new) replaces one text by another."""
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        if change is not None and change[0] == source.name:
            assert change[1] in text
            text = text.replace(change[1], change[2], 1)
        (folder / source.name).write_text(text, encoding="utf-8")
    path = folder / "kernels.so"
    subprocess.run(["cc", *BASE_FLAGS, *flags, *sorted(folder.glob("*.c")), "-o", path], check=True)
    return ctypes.CDLL(str(path))


@needs_compiler
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("conv.c", "int64_t first, count; ", "int64_t count, first; "), "Operation.first = 16, this version .* 8"),
        (("conv.c", "int64_t relu; ", "int64_t relu, spare; "), "Operation = 184, this version .* 176"),
        (("conv.c", "segments, length;", "length, segments;"), "MatrixProduct.segments"),
        (("conv.c", "#define SAMPLES 16", "#define SAMPLES 8"), "SAMPLES = 8, this version .* 16"),
        (("conv.c", "{ PACK, NCHW_TO_NHWC,", "{ NCHW_TO_NHWC, PACK,"), "PACK = 1, this version .* 0"),
        (("conv.c", "wiseale_layout[]", "other_layout[]"), "wiseale_layout"),
        (("pairs.c", "#define LOG_2 0.693147181f", "#define LOG_2 0.5f"), "self-test failed"),
        (("bytes.c", "(float)from[k] * scale", "(float)from[k]"), "self-test failed"),
    ],
    ids=["fields swapped", "field added", "table", "constant", "enum", "no layout", "wrong pairs", "wrong bytes"],
)
def test_a_library_of_another_version_is_refused(change, message, cache, tmp_path, monkeypatch):
    (tmp_path / "built").mkdir()
    library = compile_sources(tmp_path / "built", "-O1", change=change)
    with pytest.raises((RuntimeError, ValueError), match=message):
        build.check(library)
    monkeypatch.setattr(build, "_from_cache", lambda *_: (library, ""))
    assert build.kernels().library is None
    assert kernels.state().startswith("not used: ")


def processor_features() -> str:
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
            marks=pytest.mark.skipif("avx2" not in processor_features(), reason="this processor has no AVX2"),
        ),
    ],
    ids=["any processor", "one thread", "AVX2"],
)
def test_other_processors(flags, tmp_path, monkeypatch):
    """Other register lengths and tile sizes give the results of torch."""
    library = compile_sources(tmp_path, *flags)
    build.check(library)
    assert library.wiseale_is_parallel() == ("-fopenmp" in flags)
    monkeypatch.setattr(build, "kernels", lambda: Kernels(library, "compiled"))
    torch.manual_seed(0)  # with other weights a sum near zero may fall on either side of the ReLU
    stack = Stack(SameConv(1, 16, 4, 2, (17, 20)), nn.ReLU(), SameConvTranspose(16, 3, 5, 2, (9, 10)))
    (fused,) = stack.parts()
    assert isinstance(fused, FusedLayers)
    x = torch.randn(37, 1, 17, 20, generator=torch.Generator().manual_seed(0))
    ours = torch.autograd.grad(fused(x).square().sum(), stack.parameters())
    theirs = torch.autograd.grad(nn.Sequential(*stack)(x).square().sum(), stack.parameters())
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4 * b.abs().max().item())

    double = Posterior(torch.randn(48, 5, dtype=torch.float64).requires_grad_(), torch.rand(48, 5).double() + 0.1)
    single = Posterior(double.mu.detach().float().requires_grad_(), double.sigma.float())
    assert kernels.pairs.takes(single.mu, single.sigma)
    (found,), (expected,) = (
        torch.autograd.grad(pairwise.log_mean_pairs(q, pairwise.KERNELS["bhattacharyya"]).sum(), q.mu)
        for q in (single, double)
    )
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)

    rows = torch.randint(0, 256, (9, 300), dtype=torch.uint8)
    assert torch.equal(kernels.gather_bytes(rows, torch.tensor([8, 2]), 1 / 255), rows[[8, 2]].float().mul_(1 / 255))
