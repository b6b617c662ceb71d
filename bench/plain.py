"""What our loop is measured against: a loop written by hand in torch's layers, and the loops of other libraries."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BATCH, LR = 64, 5e-4

Epoch = Callable[[], float]
"""Trains one epoch and returns the seconds it took."""


@dataclass(frozen=True)
class Case:
    """One of the paper's networks and the data it is timed on."""

    name: str
    network: str
    likelihood: str
    latent: int
    x: Tensor
    batch: int = BATCH

    @property
    def bernoulli(self) -> bool:
        return self.likelihood == "bernoulli"

    def reconstruction(self, x_hat: Tensor, x: Tensor) -> Tensor:
        """Nats per observation."""
        if self.bernoulli:
            return F.binary_cross_entropy_with_logits(x_hat, x, reduction="sum") / len(x)
        return 0.5 * (x_hat - x).square().sum() / len(x)


class PlainNetwork(nn.Module):
    """The paper's pair in torch's own layers: the same sizes and padding as ours."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.encoder, features, self.decoder = (mnist if case.bernoulli else sine)(case.latent)
        self.mu, self.sigma = nn.Linear(features, case.latent), nn.Linear(features, case.latent)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.encoder(x)
        return self.mu(features), F.relu(self.sigma(features)) + 1e-3

    def loss(self, x: Tensor, case: Case) -> Tensor:
        mu, sigma = self.encode(x)
        x_hat = self.decoder(mu + sigma * torch.randn_like(mu))
        kl = 0.5 * (mu.square() + sigma.square() - 1 - 2 * sigma.log()).sum(1).mean()
        return case.reconstruction(x_hat, x) + kl


def sine(latent: int) -> tuple[nn.Module, int, nn.Module]:
    down = ((1, 16, 16, 7), (16, 16, 16, 7), (16, 32, 16, 7), (32, 32, 16, 7), (32, 64, 8, 3))
    up = ((128, 64, 8, 2), (64, 32, 16, 6), (32, 16, 16, 6))
    encoder = [layer for i, o, k, p in down for layer in (nn.Conv1d(i, o, k, 2, p), nn.ReLU())]
    decoder = [layer for i, o, k, p in up for layer in (nn.ConvTranspose1d(i, o, k, 4, p), nn.ReLU())]
    return (
        nn.Sequential(*encoder, nn.Flatten(), nn.Linear(512, 64)),
        64,
        nn.Sequential(
            *(nn.Linear(latent, 16), nn.ReLU(), nn.Unflatten(1, (16, 1)), nn.Conv1d(16, 128, 1), nn.ReLU()),
            *decoder,
            nn.ConvTranspose1d(16, 1, 16, 4, 6),
        ),
    )


def mnist(latent: int) -> tuple[nn.Module, int, nn.Module]:
    return (
        nn.Sequential(
            *(nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU()),
            *(nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 32)),
        ),
        32,
        nn.Sequential(
            *(nn.Linear(latent, 16), nn.ReLU(), nn.Linear(16, 128), nn.ReLU()),
            *(nn.Linear(128, 784), nn.Unflatten(1, (1, 28, 28))),
        ),
    )


def plain(case: Case, compiled: bool = False) -> Epoch:
    """What one writes by hand: one tensor indexed by a permutation, fused Adam, no DataLoader."""
    network = PlainNetwork(case)
    loss_of = torch.compile(network.loss, dynamic=False) if compiled else network.loss
    optimizer = torch.optim.Adam(network.parameters(), lr=LR, fused=True)

    def epoch() -> float:
        started = time.perf_counter()
        order = torch.randperm(len(case.x))
        for start in range(0, len(case.x) - case.batch + 1, case.batch):
            loss = loss_of(case.x[order[start : start + case.batch]], case)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return time.perf_counter() - started

    return epoch


def torch_compile(case: Case) -> Epoch:
    """The plain loop with its loss compiled; compiling happens in the epoch that warms up."""
    return plain(case, compiled=True)


def lightning(case: Case) -> Epoch:
    """Lightning's Trainer at its leanest: no logger, no checkpoints, no progress bar; its own epoch is timed."""
    import lightning as L
    from torch.utils.data import DataLoader, TensorDataset

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = PlainNetwork(case)

        def training_step(self, batch: list[Tensor], _: int) -> Tensor:
            return self.network.loss(batch[0], case)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=LR, fused=True)

        def on_train_epoch_start(self) -> None:
            self.started = time.perf_counter()

        def on_train_epoch_end(self) -> None:
            self.seconds = time.perf_counter() - self.started

    module = Module()
    loader = DataLoader(TensorDataset(case.x), BATCH, shuffle=True, drop_last=True)
    switches = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}

    def epoch() -> float:
        with quiet():
            L.Trainer(max_epochs=1, accelerator="cpu", enable_model_summary=False, **switches).fit(module, loader)
        return module.seconds

    return epoch


def pythae(case: Case) -> Epoch:
    """pythae's VAE and trainer with the same layers; one pass of its training loop is timed."""
    from pythae.data.datasets import BaseDataset
    from pythae.models import VAE, VAEConfig
    from pythae.models.base.base_utils import ModelOutput
    from pythae.models.nn import BaseDecoder, BaseEncoder
    from pythae.trainers import BaseTrainer, BaseTrainerConfig

    network = PlainNetwork(case)

    class Encoder(BaseEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.mu, self.log_var = network.encoder, network.mu, network.sigma

        def forward(self, x: Tensor) -> ModelOutput:
            features = self.body(x)
            return ModelOutput(embedding=self.mu(features), log_covariance=self.log_var(features))

    class Decoder(BaseDecoder):
        def __init__(self) -> None:
            super().__init__()
            self.body = network.decoder

        def forward(self, z: Tensor) -> ModelOutput:
            x_hat = self.body(z)
            return ModelOutput(reconstruction=x_hat.sigmoid() if case.bernoulli else x_hat)

    settings = VAEConfig(case.x.shape[1:], case.latent, reconstruction_loss="bce" if case.bernoulli else "mse")
    with quiet():
        data = BaseDataset(case.x, torch.zeros(len(case.x)))
        config = BaseTrainerConfig(
            output_dir=tempfile.mkdtemp(), learning_rate=LR, per_device_train_batch_size=BATCH, no_cuda=True
        )
        trainer = BaseTrainer(VAE(settings, Encoder(), Decoder()), train_dataset=data, training_config=config)
        trainer.prepare_training()

    def epoch() -> float:
        with quiet():
            started = time.perf_counter()
            trainer.train_step(1)
            return time.perf_counter() - started

    return epoch


PEERS = {"plain": plain, "plain, torch.compile": torch_compile, "Lightning": lightning, "pythae": pythae}


def missing(peer: str) -> str:
    """Why a peer cannot be measured here; empty if it can."""
    if peer == "plain, torch.compile":
        return "" if any(map(shutil.which, ("c++", "g++", "clang++"))) else "no C++ compiler"
    return "" if peer == "plain" or importlib.util.find_spec(peer.lower()) else "not installed"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the messages of other libraries."""
    logging.disable(logging.WARNING)
    nowhere = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
