import pytest

from wiseale.kernels import build


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder: the next call of ``build.kernels`` compiles into its subfolder, which this returns."""
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    build.kernels.cache_clear()
    yield tmp_path / "cache" / "native"
    build.kernels.cache_clear()
