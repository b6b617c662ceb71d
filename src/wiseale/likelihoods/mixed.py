"""``table``: columns of different kinds, each with a distribution of its own; missing cells count nothing.

Numbers are Gaussian with a learned width each, binary columns Bernoulli, categories softmax over their levels, counts
Poisson or negative binomial. log p(x|z) is the sum over the cells that were observed, in nats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from wiseale.config import setting
from wiseale.errors import ConfigError
from wiseale.likelihoods.bernoulli import start_logits
from wiseale.likelihoods.columns import Binary, Categorical, NegativeBinomial, Poisson
from wiseale.likelihoods.gaussian import Gaussian
from wiseale.likelihoods.likelihood import (
    Likelihood,
    LikelihoodSettings,
    OutputLayer,
    best_scale,
    log_excess,
)
from wiseale.spaces import MixedSpace, Space

_DISPERSIONS = (-5.0, 16.0)  # logarithm of r: at e^16 the variance is the mean's, up to a part in a million at mean 9


_KINDS: Mapping[str, Callable[[Tensor, MixedOutput], Likelihood]] = {
    "number": lambda entries, layer: Gaussian(entries, layer.x_sigma),
    "binary": lambda entries, layer: Binary(entries),
    "category": lambda entries, layer: Categorical(entries),
    "poisson": lambda entries, layer: Poisson(entries),
    "negative_binomial": lambda entries, layer: NegativeBinomial(entries, layer.dispersion),
}
"""The distribution of each kind's cells, ``(M, columns)``, from the decoder's output for them."""


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

    @cached_property
    def parts(self) -> dict[str, Likelihood]:
        """The distribution of each kind's cells."""
        return {kind: _KINDS[kind](self.layer.entries(self.output, kind), self.layer) for kind in self.layer.kinds}

    @property
    def mean(self) -> Tensor:
        """E[x|z] cell by cell, (M, C): the probability of a binary column's 1, the likeliest level of a category."""
        return self.layer.in_order([part.mean for part in self.parts.values()])

    @property
    def expected(self) -> Tensor:
        """E of every entry, (M, W): means, probabilities of each level, rates."""
        result = self.output.clone()
        for kind, part in self.parts.items():
            self.layer.set_entries(result, kind, part.expected)
        return result

    def cell_log_prob(self, x: Tensor) -> Tensor:
        """log p(cell|z) in nats, (M, C); 0 where a cell is missing."""
        return self._by_kind(x, lambda part, cells: part.cell_log_prob(cells), missing=0.0)

    def errors(self, x: Tensor) -> Tensor:
        """How wrong each cell comes back, (M, C), NaN where it is missing.

        Numbers: (x − mean)². Binary columns and categories: 1 − p(x|z). Counts: (log(1 + x) − log(1 + rate))².
        """
        return self._by_kind(x, lambda part, cells: part.errors(cells), missing=math.nan)

    def surprise(self, x: Tensor) -> Tensor:
        """Log p of the expected cell less log p of the observed one, (M, C), nats; at least 0, NaN where it is missing.

        Expected are the mean of a number, the likeliest level, and a count's rate rounded down.
        """
        return self._by_kind(x, lambda part, cells: part.surprise(cells).clamp_min(0), missing=math.nan)

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One draw of every cell, (M, C)."""
        return self.layer.in_order([part.sample(generator) for part in self.parts.values()])

    def _by_kind(self, x: Tensor, function: Callable[[Likelihood, Tensor], Tensor], missing: float) -> Tensor:
        """A function of each kind's distribution and cells, (M, C), in the order of the columns."""
        observed = ~x.isnan()
        x = torch.where(observed, x, 0.0)
        values = [function(part, self.layer.columns(x, kind)) for kind, part in self.parts.items()]
        return torch.where(observed, self.layer.in_order(values), missing)


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
        groups = {name: [i for i, column in enumerate(space.columns) if column.kind == name] for name in _KINDS}
        self.kinds = [kind for kind in _KINDS if groups[kind]]
        for name in self.kinds:
            self._keep(f"_{name}_columns", groups[name])
            self._keep(f"_{name}_entries", [space.starts[i] for i in groups[name]])
        grouped = [i for group in groups.values() for i in group]
        self._keep("_order", sorted(range(len(grouped)), key=grouped.__getitem__))
        widths = [space.columns[i].width for i in groups["category"]]
        starts = torch.tensor([space.starts[i] for i in groups["category"]], dtype=torch.long)[:, None]
        levels = torch.arange(max(widths, default=1))
        self.register_buffer("levels", (starts + levels).clamp_max(len(space.entries) - 1), persistent=False)
        self.register_buffer("beyond", levels >= torch.tensor(widths, dtype=torch.long)[:, None], persistent=False)
        for name, kind in (("log_x_sigma", "number"), ("log_dispersion", "negative_binomial")):
            start = torch.zeros(len(groups[kind]))
            if len(start):
                self.register_parameter(name, nn.Parameter(start))
            else:
                self.register_buffer(name, start, persistent=False)

    def _keep(self, name: str, positions: list[int]) -> None:
        self.register_buffer(name, torch.tensor(positions, dtype=torch.long), persistent=False)

    def columns(self, x: Tensor, kind: str) -> Tensor:
        """The cells of one kind's columns."""
        return x.index_select(1, self.get_buffer(f"_{kind}_columns"))

    def entries(self, output: Tensor, kind: str) -> Tensor:
        """One kind's entries, (M, columns); of categories (M, columns, most levels), −∞ beyond a column's levels."""
        if kind == "category":
            return output[:, self.get_buffer("levels")].masked_fill(self.get_buffer("beyond"), -math.inf)
        return output.index_select(1, self.get_buffer(f"_{kind}_entries"))

    def in_order(self, parts: list[Tensor]) -> Tensor:
        """Cells computed kind by kind, (M, C), in the order of the columns."""
        return torch.cat(parts, 1).index_select(1, self.get_buffer("_order"))

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

    def set_entries(self, table: Tensor, kind: str, values: Tensor) -> None:
        """Write what :meth:`entries` reads."""
        if kind == "category":
            inside = ~self.get_buffer("beyond")
            table[:, self.get_buffer("levels")[inside]] = values[:, inside]
        else:
            table[:, self.get_buffer(f"_{kind}_entries")] = values

    def cells(self, expected: Tensor) -> Tensor:
        """Cells (M, C) for expectations (M, W): of a category, the likeliest level."""
        entries = {kind: self.entries(expected, kind) for kind in self.kinds}
        if "category" in entries:
            entries["category"] = entries["category"].argmax(2).to(expected)
        return self.in_order(list(entries.values()))

    @torch.no_grad()
    def start_noise(self, residual: float) -> float:
        """Set every width to the standard deviation of the features' residuals."""
        self.log_x_sigma.fill_(log_excess(residual, self.x_sigma_min))
        return max(residual, self.x_sigma_min**2)

    def start_decoder(self, mean: Tensor, loadings: Tensor, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """A decoder whose expected entries are those of the linear model about z = 0: one step of each link function.

        ``mean`` (W,) and ``loadings`` (W, d_z) are of the entries, x (n, C) cells to judge the links' scale by.
        """
        bias, weights, linear = mean.clone(), loadings.clone(), torch.ones(len(mean), 1, dtype=torch.bool)
        for i, (column, start) in enumerate(zip(self.space.columns, self.space.starts, strict=True)):
            part = slice(start, start + column.width)
            linear[part] = column.kind == "number"
            if column.kind == "binary":
                bias[part], weights[part] = start_logits(mean[part], weights[part])
            elif column.kind == "category":
                p = mean[part].clamp_min(0.5 / len(x))
                bias[part], weights[part] = p.log(), weights[part] / p.clamp_min(0.05)[:, None]
            elif column.is_count:
                bias[part] = x[:, i].nanmean().nan_to_num(1.0).clamp_min(1e-3).log()
        if bool(linear.all()):
            return weights, bias
        exact = MixedOutput(self.space, self.x_sigma_min, self.hidden)
        exact.load_state_dict(self.state_dict())
        exact = exact.double()  # on the CPU
        return best_scale(weights, lambda decoder: exact(z @ decoder.T + bias).log_prob(x), linear), bias
