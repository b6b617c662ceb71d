"""``table``: columns of different kinds, each with a distribution of its own; missing cells count nothing.

Numbers are Gaussian with a learned width each, binary columns Bernoulli, categories softmax over their levels, counts
Poisson or negative binomial. log p(x|z) is the sum over the cells that were observed, in nats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wiseale.config import setting
from wiseale.errors import ConfigError
from wiseale.likelihoods.likelihood import Likelihood, LikelihoodSettings, OutputLayer, normal_like
from wiseale.posterior import LOG_2PI
from wiseale.spaces import MixedSpace, Space
from wiseale.spaces.columns import COUNTS

HIGHEST_LOG_RATE = 25.0  # of a count: exp of it is far beyond any table and far below float32's largest
_DISPERSIONS = (-5.0, 16.0)  # logarithm of r: at e^16 the variance is the mean's, up to a part in a million at mean 9
_KINDS = ("number", "binary", "category", *COUNTS)


@dataclass(frozen=True)
class Mixed(Likelihood):
    """The cells of M rows given the decoder's output (M, W), one entry after the other as in the space.

    >>> from wiseale.spaces import Column
    >>> space = MixedSpace.of([Column("mass"), Column("colour", "category", ("red", "blue"))])
    >>> likelihood = TableSettings().build(space)(torch.zeros(1, 3))
    >>> likelihood.log_prob(torch.tensor([[math.nan, 1.0]]))  # the number is missing: log ½ is left
    tensor([-0.6931], grad_fn=<SumBackward1>)
    """

    output: Tensor
    layer: MixedOutput

    @property
    def mean(self) -> Tensor:
        """E[x|z] cell by cell, (M, C): the probability of a binary column's 1, the likeliest level of a category."""
        return self.layer.cells(self.expected)

    @property
    def expected(self) -> Tensor:
        """E of every entry, (M, W): means, probabilities of each level, rates."""
        return self.layer.expectation(self.output)

    def cell_log_prob(self, x: Tensor) -> Tensor:
        """log p(cell|z) in nats, (M, C); 0 where a cell is missing."""
        observed = ~x.isnan()
        x = torch.where(observed, x, 0.0)
        layer, parts = self.layer, []
        for kind in layer.present:
            cells = x.index_select(1, layer.places(kind, "columns"))
            if kind == "category":
                log_p = layer.logits(self.output).log_softmax(2)
                parts.append(log_p.gather(2, cells.long()[..., None])[..., 0])
                continue
            output = layer.entries(self.output, kind)
            if kind == "number":
                scaled = (cells - output) / layer.x_sigma
                parts.append(-0.5 * scaled.square() - layer.x_sigma.log() - 0.5 * LOG_2PI)
            elif kind == "binary":
                parts.append(-F.binary_cross_entropy_with_logits(output, cells, reduction="none"))
            elif kind == "poisson":
                parts.append(_poisson(_exact(cells), _exact(output)).to(output))
            else:
                parts.append(_negative_binomial(_exact(cells), _exact(output), _exact(layer.dispersion)).to(output))
        return torch.where(observed, layer.in_order(parts), 0.0)

    def errors(self, x: Tensor) -> Tensor:
        """How wrong each cell comes back, (M, C), NaN where it is missing.

        Numbers: (x − mean)². Binary columns and categories: 1 − p(x|z). Counts: (log(1 + x) − log(1 + rate))².
        """
        observed = ~x.isnan()
        present, mean, columns = torch.where(observed, x, 0.0), self.mean, self.layer.space.columns
        squared = (present - mean).square()
        counted = (present.log1p() - mean.log1p()).square()
        unlikely = -self.cell_log_prob(x).expm1()
        count = torch.tensor([column.is_count for column in columns], device=x.device)
        level = torch.tensor([column.has_levels for column in columns], device=x.device)
        errors = torch.where(level, unlikely, torch.where(count, counted, squared))
        return torch.where(observed, errors, math.nan)

    def surprise(self, x: Tensor) -> Tensor:
        """Log p of the expected cell less log p of the observed one, (M, C), nats; at least 0, NaN where it is missing.

        Expected are the mean of a number, the likeliest level, and a count's rate rounded down.
        """
        expected = self.mean
        for i, column in enumerate(self.layer.space.columns):
            if column.kind == "binary":
                expected[:, i] = expected[:, i].round()
            elif column.is_count:
                expected[:, i] = expected[:, i].floor()
        surprise = (self.cell_log_prob(expected) - self.cell_log_prob(x)).clamp_min(0)
        return torch.where(x.isnan(), math.nan, surprise)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw of every cell, (M, C), drawn on the CPU, as everywhere, because generators are of the CPU."""
        layer, parts = self.layer, []
        for kind in layer.present:
            if kind == "category":
                p = layer.logits(self.output).softmax(2).cpu()
                levels = torch.multinomial(p.flatten(0, 1), 1, generator=generator)
                parts.append(levels.view(p.shape[:2]).to(self.output))
                continue
            output = layer.entries(self.output, kind)
            if kind == "number":
                parts.append(output + layer.x_sigma * normal_like(output, generator))
            elif kind == "binary":
                parts.append(torch.bernoulli(output.sigmoid().cpu(), generator=generator).to(output))
            else:
                rate = output.clamp_max(HIGHEST_LOG_RATE).exp().cpu()
                if kind == "negative_binomial":  # a Poisson whose rate is Gamma(r, mean/r)
                    r = layer.dispersion.cpu().expand_as(rate).contiguous()
                    rate = torch._standard_gamma(r, generator=generator) / r * rate
                parts.append(torch.poisson(rate, generator=generator).to(output))
        return layer.in_order(parts)


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
class TableSettings(LikelihoodSettings):
    """Columns of different kinds, some cells missing; chosen for such tables."""

    x_sigma_min: float = setting(0.01, "floor of a number's learned width, in standardised units", above=0)
    hidden: float = setting(0.2, "part of the cells hidden from the encoder in each training step", minimum=0, below=1)

    def build(self, space: Space) -> MixedOutput:
        """With the widths and dispersions of the columns."""
        self.require(space)
        assert isinstance(space, MixedSpace)
        return MixedOutput(space, self.x_sigma_min, self.hidden)

    def require(self, space: Space) -> None:
        """An error for rows that have no columns with kinds."""
        if not isinstance(space, MixedSpace):
            raise ConfigError("likelihood table is chosen for tables with categories or missing cells: leave it out")


class MixedOutput(OutputLayer):
    """Takes the decoder's output as the parameters of each column; learns a width for each number, r for counts."""

    log_x_sigma: Tensor
    log_dispersion: Tensor

    def __init__(self, space: MixedSpace, x_sigma_min: float, hidden: float) -> None:
        super().__init__()
        self.space = space
        self.x_sigma_min = x_sigma_min
        self.hidden = hidden
        kinds = [column.kind for column in space.columns]
        self.present = [kind for kind in _KINDS if kind in kinds]
        groups = {kind: [i for i, other in enumerate(kinds) if other == kind] for kind in _KINDS}
        for kind in self.present:
            self._place(kind, "columns", groups[kind])
            self._place(kind, "entries", [space.starts[i] for i in groups[kind]])
        grouped = [i for group in groups.values() for i in group]
        self._place("all", "order", sorted(range(len(grouped)), key=grouped.__getitem__))
        widths = [space.columns[i].width for i in groups["category"]]
        starts = torch.tensor([space.starts[i] for i in groups["category"]], dtype=torch.long)[:, None]
        levels = torch.arange(max(widths, default=1))
        self.register_buffer("levels", (starts + levels).clamp_max(len(space.entries) - 1), persistent=False)
        self.register_buffer("beyond", levels >= torch.tensor(widths, dtype=torch.long)[:, None], persistent=False)
        for name, kind in (("log_x_sigma", "number"), ("log_dispersion", "negative_binomial")):
            start = torch.zeros(kinds.count(kind))
            if len(start):
                self.register_parameter(name, nn.Parameter(start))
            else:
                self.register_buffer(name, start, persistent=False)

    def _place(self, kind: str, what: str, values: list[int]) -> None:
        self.register_buffer(f"_{kind}_{what}", torch.tensor(values, dtype=torch.long), persistent=False)

    def places(self, kind: str, what: str) -> Tensor:
        """Where the ``"columns"`` of a kind are, or the first ``"entries"`` of each."""
        return self.get_buffer(f"_{kind}_{what}")

    def in_order(self, parts: list[Tensor]) -> Tensor:
        """Cells computed kind by kind, (M, C), in the order of the columns."""
        return torch.cat(parts, 1).index_select(1, self.places("all", "order"))

    def entries(self, output: Tensor, kind: str) -> Tensor:
        """The decoder's outputs for the columns of one kind that has one entry each."""
        return output.index_select(1, self.places(kind, "entries"))

    def logits(self, output: Tensor) -> Tensor:
        """The decoder's outputs for categories, (M, columns, most levels), −∞ beyond a column's levels."""
        return output[:, self.get_buffer("levels")].masked_fill(self.get_buffer("beyond"), -math.inf)

    @property
    def x_sigma(self) -> Tensor:
        """The standard deviation of each number in the network's units."""
        return self.log_x_sigma.exp() + self.x_sigma_min

    @property
    def dispersion(self) -> Tensor:
        """r of each negative binomial."""
        return self.log_dispersion.clamp(*_DISPERSIONS).exp()

    def forward(self, output: Tensor) -> Mixed:
        """The likelihood of a batch."""
        return Mixed(output, self)

    def expectation(self, output: Tensor) -> Tensor:
        """Means, probabilities and rates for the decoder's output, both (M, W)."""
        result = output.clone()
        for kind in self.present:
            if kind == "category":
                inside = ~self.get_buffer("beyond")
                p = self.logits(output).softmax(2)
                result[:, self.get_buffer("levels")[inside]] = p[:, inside]
            elif kind != "number":
                entries = self.entries(output, kind)
                link = entries.sigmoid() if kind == "binary" else entries.clamp_max(HIGHEST_LOG_RATE).exp()
                result[:, self.places(kind, "entries")] = link
        return result

    def cells(self, expected: Tensor) -> Tensor:
        """Cells (M, C) for expectations (M, W): of a category, the likeliest level."""
        return self.in_order(
            [
                self.logits(expected).argmax(2).to(expected) if kind == "category" else self.entries(expected, kind)
                for kind in self.present
            ]
        )

    @torch.no_grad()
    def start_noise(self, residual: float) -> float:
        """Set every width to the standard deviation of the features' residuals."""
        above = max(math.sqrt(residual) - self.x_sigma_min, 0.1 * self.x_sigma_min)
        self.log_x_sigma.fill_(math.log(above))
        return max(residual, self.x_sigma_min**2)

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """A decoder whose expected entries are those of the linear model about z = 0: one step of each link function.

        ``mean`` (W,) and ``loadings`` (W, d_z) are of the entries, x (n, C) cells to judge the links' scale by.
        """
        bias, weights, linear = mean.clone(), loadings.clone(), torch.ones(len(mean), dtype=torch.bool)
        for i, (column, start) in enumerate(zip(self.space.columns, self.space.starts, strict=True)):
            part = slice(start, start + column.width)
            linear[part] = column.kind == "number"
            if column.kind == "binary":
                p = mean[part].clamp(0.01, 0.99)
                bias[part], weights[part] = p.logit(), weights[part] / (p * (1 - p)).clamp_min(0.05)[:, None]
            elif column.kind == "category":
                p = mean[part].clamp_min(0.5 / len(x))
                bias[part], weights[part] = p.log(), weights[part] / p.clamp_min(0.05)[:, None]
            elif column.is_count:
                bias[part] = x[:, i].nanmean().nan_to_num(1.0).clamp_min(1e-3).log()
        return self._best_scale(weights, bias, linear, x, z), bias

    def _best_scale(self, weights: Tensor, bias: Tensor, linear: Tensor, x: Tensor, z: Tensor) -> Tensor:
        """The weights, those that are not a number's times the power of ½ that suits the rows best."""
        if bool(linear.all()):
            return weights
        candidates = [torch.where(linear[:, None], weights, weights * 2.0**-k) for k in range(5)]
        exact = MixedOutput(self.space, self.x_sigma_min, self.hidden)
        exact.load_state_dict(self.state_dict())
        exact = exact.double()  # on the CPU
        worth = [float(exact(z @ candidate.T + bias).log_prob(x).mean()) for candidate in candidates]
        return candidates[worth.index(max(worth))]
