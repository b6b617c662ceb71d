"""``table``: columns of different kinds, each with a distribution of its own; missing cells count nothing.

Numbers are Gaussian with a learned width each, binary columns Bernoulli, categories softmax over their levels, counts
Poisson or negative binomial. log p(x|z) is the sum over the cells that were observed, in nats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from wiseale.config import Settings, setting
from wiseale.errors import ConfigError
from wiseale.likelihoods.cells import COUNTS, CellFeatures, Layout, Places
from wiseale.likelihoods.family import normal_like
from wiseale.posterior import LOG_2PI

HIGHEST_LOG_RATE = 25.0  # of a count: exp of it is far beyond any table and far below float32's largest
_DISPERSIONS = (-5.0, 16.0)  # logarithm of r: at e^16 the variance is the mean's, up to a part in a million at mean 9


@dataclass(frozen=True)
class Table:
    """The cells of M rows given the decoder's output (M, W), laid out as in :class:`~wiseale.likelihoods.cells.Layout`.

    >>> family = TableFamily("number,category:2").build((2,))
    >>> table = family(torch.zeros(1, 3))
    >>> table.log_prob(torch.tensor([[math.nan, 1.0]]))  # the number is missing: log ½ is left
    tensor([-0.6931], grad_fn=<SumBackward1>)
    """

    output: Tensor
    family: LearnedTable

    @property
    def mean(self) -> Tensor:
        """E[x|z] cell by cell, (M, C): the probability of a binary column's 1, the likeliest level of a category."""
        return self.family.cells(self.expected)

    @property
    def expected(self) -> Tensor:
        """E of every entry, (M, W): means, probabilities of each level, rates."""
        return self.family.expectation(self.output)

    def log_prob(self, x: Tensor) -> Tensor:
        """Σ over the observed cells of log p(cell|z), nats, (M,)."""
        return self.cell_log_prob(x).sum(1)

    def cell_log_prob(self, x: Tensor) -> Tensor:
        """log p(cell|z) in nats, (M, C); 0 where a cell is missing."""
        observed = ~x.isnan()
        x = torch.where(observed, x, 0.0)
        places, family = self.family.places, self.family
        parts = []
        for kind in family.present:
            cells = places.cells(x, kind)
            if kind == "category":
                log_p = places.logits(self.output).log_softmax(2)
                parts.append(log_p.gather(2, cells.long()[..., None])[..., 0])
                continue
            output = places.entries(self.output, kind)
            if kind == "number":
                scaled = (cells - output) / family.x_sigma
                parts.append(-0.5 * scaled.square() - family.x_sigma.log() - 0.5 * LOG_2PI)
            elif kind == "binary":
                parts.append(-F.binary_cross_entropy_with_logits(output, cells, reduction="none"))
            elif kind == "poisson":
                parts.append(_poisson(_exact(cells), _exact(output)).to(output))
            else:
                r = _exact(family.dispersion)
                parts.append(_negative_binomial(_exact(cells), _exact(output), r).to(output))
        return torch.where(observed, torch.cat(parts, 1).index_select(1, places.get_buffer("order")), 0.0)

    def average_log_prob(self, x: Tensor) -> Tensor:
        """(1/N) Σ_j log p(x_j|z_i), nats, (M,), one observation at a time and again in the backward pass."""

        def column(row: Tensor) -> Tensor:
            return self.log_prob(row.expand(len(self.output), -1))

        return torch.stack([checkpoint(column, row, use_reentrant=False) for row in x]).mean(0)

    def errors(self, x: Tensor) -> Tensor:
        """How wrong each cell comes back, (M, C), NaN where it is missing.

        Numbers: (x − mean)². Binary columns and categories: 1 − p(x|z). Counts: (log(1 + x) − log(1 + rate))².
        """
        observed = ~x.isnan()
        present = torch.where(observed, x, 0.0)
        kinds, mean = self.family.layout.kinds, self.mean
        squared = (present - mean).square()
        counted = (present.log1p() - mean.log1p()).square()
        surprise = -self.cell_log_prob(x).expm1()
        count = torch.tensor([kind in COUNTS for kind in kinds], device=x.device)
        level = torch.tensor([kind in ("binary", "category") for kind in kinds], device=x.device)
        errors = torch.where(level, surprise, torch.where(count, counted, squared))
        return torch.where(observed, errors, math.nan)

    def surprise(self, x: Tensor) -> Tensor:
        """Log p of the expected cell less log p of the observed one, (M, C), nats; at least 0, NaN where it is missing.

        Expected are the mean of a number, the likeliest level, and a count's rate rounded down.
        """
        expected = self.mean
        for kind, rounded in (("binary", torch.round), *((count, torch.floor) for count in COUNTS)):
            for column in self.family.layout.columns(kind):
                expected[:, column] = rounded(expected[:, column])
        surprise = (self.cell_log_prob(expected) - self.cell_log_prob(x)).clamp_min(0)
        return torch.where(x.isnan(), math.nan, surprise)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw of every cell, (M, C), drawn on the CPU, as everywhere, because generators are of the CPU."""
        places, family, parts = self.family.places, self.family, []
        for kind in family.present:
            if kind == "category":
                p = places.logits(self.output).softmax(2).cpu()
                drawn = torch.multinomial(p.flatten(0, 1), 1, generator=generator)
                parts.append(drawn.view(p.shape[:2]).to(self.output))
                continue
            output = places.entries(self.output, kind)
            if kind == "number":
                parts.append(output + family.x_sigma * normal_like(output, generator))
            elif kind == "binary":
                parts.append(torch.bernoulli(output.sigmoid().cpu(), generator=generator).to(output))
            else:
                rate = output.clamp_max(HIGHEST_LOG_RATE).exp().cpu()
                if kind == "negative_binomial":  # a Poisson whose rate is Gamma(r, mean/r)
                    r = family.dispersion.cpu().expand_as(rate).contiguous()
                    rate = torch._standard_gamma(r, generator=generator) / r * rate
                parts.append(torch.poisson(rate, generator=generator).to(output))
        return torch.cat(parts, 1).index_select(1, places.get_buffer("order"))


def _exact(values: Tensor) -> Tensor:
    """In float64 (Apple's GPU has none): log p of a large count is a small difference of large numbers."""
    return values if values.device.type == "mps" else values.double()


def _poisson(x: Tensor, log_rate: Tensor) -> Tensor:
    """log p of counts with this rate, nats."""
    log_rate = log_rate.clamp_max(HIGHEST_LOG_RATE)
    return x * log_rate - log_rate.exp() - torch.lgamma(x + 1)


def _negative_binomial(x: Tensor, log_mean: Tensor, r: Tensor) -> Tensor:
    """log p of counts with this mean and the variance mean + mean²/r, nats."""
    log_odds = log_mean.clamp_max(HIGHEST_LOG_RATE) - r.log()
    binomial = torch.lgamma(x + r) - torch.lgamma(r) - torch.lgamma(x + 1)
    return binomial + r * F.logsigmoid(-log_odds) + x * F.logsigmoid(log_odds)


@dataclass(frozen=True)
class TableFamily(Settings):
    """Columns of different kinds, some cells missing; chosen for such tables, with their kinds."""

    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    standardizes: ClassVar[bool] = True

    kinds: str = setting("", "kind of each column: number, binary, category:LEVELS, poisson, negative_binomial")
    x_sigma_min: float = setting(0.01, "floor of a number's learned width, in standardised units", above=0)
    hidden: float = setting(0.2, "part of the cells hidden from the encoder in each training step", minimum=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        Layout.parse(self.kinds)

    def __call__(self, output: Tensor) -> Table:
        """Only a built family has the widths that a likelihood needs."""
        raise TypeError("build the family first")

    def build(self, x_shape: tuple[int, ...]) -> LearnedTable:
        """The module that a model holds."""
        layout = Layout.parse(self.kinds)
        if x_shape != (len(layout.kinds),):
            raise ConfigError(f"likelihood table has {len(layout.kinds)} kinds for rows of shape {x_shape}")
        return LearnedTable(layout, self.x_sigma_min, self.hidden)

    def start_noise(self, residual: float) -> float:
        """Only a built family has noise to set."""
        raise TypeError("build the family first")

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Only a built family knows its features."""
        raise TypeError("build the family first")


class LearnedTable(nn.Module):
    """The family of a table with what it learns: a width for each number, a dispersion r for each negative binomial.

    Attributes:
        features: what the encoder sees of the cells.
    """

    support: ClassVar[tuple[float, float]] = TableFamily.support
    standardizes: ClassVar[bool] = True

    log_x_sigma: Tensor
    log_dispersion: Tensor

    def __init__(self, layout: Layout, x_sigma_min: float, hidden: float) -> None:
        super().__init__()
        self.layout = layout
        self.x_sigma_min = x_sigma_min
        self.hidden = hidden
        self.present = [kind for kind in ("number", "binary", "category", *COUNTS) if kind in layout.kinds]
        self.places = Places(layout)
        self.features = CellFeatures(layout)
        for name, kind in (("log_x_sigma", "number"), ("log_dispersion", "negative_binomial")):
            start = torch.zeros(layout.kinds.count(kind))
            if len(start):
                self.register_parameter(name, nn.Parameter(start))
            else:
                self.register_buffer(name, start, persistent=False)

    @property
    def x_sigma(self) -> Tensor:
        """The standard deviation of each number in the network's units."""
        return self.log_x_sigma.exp() + self.x_sigma_min

    @property
    def dispersion(self) -> Tensor:
        """r of each negative binomial."""
        return self.log_dispersion.clamp(*_DISPERSIONS).exp()

    @property
    def seen_shape(self) -> tuple[int, ...]:
        """Of what a network sees of a row: its features, and which cells were observed."""
        return (self.layout.size + len(self.layout.kinds),)

    def seen(self, x: Tensor) -> Tensor:
        """What a network sees of cells (M, C), (M, W + C)."""
        features: Tensor = self.features(x)
        return torch.cat([features, (~x.isnan()).to(features)], 1)

    def forward(self, output: Tensor) -> Table:
        """The likelihood of a batch."""
        return Table(output, self)

    def build(self, x_shape: tuple[int, ...]) -> LearnedTable:
        """It is built already."""
        return self

    def expectation(self, output: Tensor) -> Tensor:
        """Means, probabilities and rates for the decoder's output, both (M, W)."""
        result = output.clone()
        for kind in self.present:
            if kind == "category":
                inside = ~self.places.get_buffer("beyond")
                p = self.places.logits(output).softmax(2)
                result[:, self.places.get_buffer("levels")[inside]] = p[:, inside]
            elif kind != "number":
                places = self.places.get_buffer(f"{kind}_places")
                entries = output[:, places]
                result[:, places] = entries.sigmoid() if kind == "binary" else entries.clamp_max(HIGHEST_LOG_RATE).exp()
        return result

    def cells(self, expected: Tensor) -> Tensor:
        """Cells (M, C) for expectations (M, W): of a category, the likeliest level."""
        parts = [
            self.places.entries(expected, kind)
            if kind != "category"
            else self.places.logits(expected).argmax(2).to(expected)
            for kind in self.present
        ]
        return torch.cat(parts, 1).index_select(1, self.places.get_buffer("order"))

    @torch.no_grad()
    def start_noise(self, residual: float) -> float:
        """Set every width to the standard deviation of the features' residuals."""
        above = max(math.sqrt(residual) - self.x_sigma_min, 0.1 * self.x_sigma_min)
        self.log_x_sigma.fill_(math.log(above))
        return max(residual, self.x_sigma_min**2)

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """A decoder whose expected entries are those of the linear model about z = 0: one step of each link function.

        ``mean`` (W,) and ``loadings`` (W, d_z) are of the features, x (n, C) cells to judge the links' scale by.
        """
        shift, scale = (part.cpu().to(mean) for part in (self.features.shift, self.features.scale))
        centre, weights = shift + scale * mean, scale[:, None] * loadings
        bias, linear = centre.clone(), torch.ones(len(centre), dtype=torch.bool)
        for column, kind in enumerate(self.layout.kinds):
            start = self.layout.starts[column]
            part = slice(start, start + self.layout.widths[column])
            linear[part] = kind == "number"
            if kind == "binary":
                p = centre[part].clamp(0.01, 0.99)
                bias[part], weights[part] = p.logit(), weights[part] / (p * (1 - p)).clamp_min(0.05)[:, None]
            elif kind == "category":
                p = centre[part].clamp_min(0.5 / len(x))
                bias[part], weights[part] = p.log(), weights[part] / p.clamp_min(0.05)[:, None]
            elif kind in COUNTS:
                bias[part] = x[:, column].nanmean().nan_to_num(1.0).clamp_min(1e-3).log()
        return self._best_scale(weights, bias, linear, x, z), bias

    def _best_scale(self, weights: Tensor, bias: Tensor, linear: Tensor, x: Tensor, z: Tensor) -> Tensor:
        """The weights, those that are not a number's times the power of ½ that suits the rows best."""
        if bool(linear.all()):
            return weights
        scaled = [torch.where(linear[:, None], weights, weights * 2.0**-k) for k in range(5)]
        exact = _in_double(self)
        worth = [float(exact(z @ candidate.T + bias).log_prob(x).mean()) for candidate in scaled]
        return scaled[worth.index(max(worth))]


def _in_double(family: LearnedTable) -> LearnedTable:
    """A copy on the CPU in float64."""
    copy = LearnedTable(family.layout, family.x_sigma_min, family.hidden)
    copy.load_state_dict(family.state_dict())
    return copy.double()
