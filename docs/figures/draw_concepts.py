"""Draw the pictures of docs/concepts.md: `python docs/figures/draw_concepts.py` writes them beside this file."""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from scipy.stats import norm

from wiseale.divergences import kl_aggregate_upper_bound, kl_posterior_prior
from wiseale.posterior import Posterior

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.45"
plt.rcParams |= {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "savefig.dpi": 150}


def save(figure, name):
    """Write a PNG that two calls make equal."""
    figure.savefig(HERE / f"concept_{name}.png", metadata={"Software": None})
    plt.close(figure)


def auto_encoder():
    """A signal, its posterior, a drawn code and the reconstruction."""
    figure = plt.figure(figsize=(10, 2.6))
    t = np.linspace(0, 1, 80)
    wave = np.sin(2 * np.pi * (1.7 * t + 0.1))
    noisy = wave + 0.15 * np.random.default_rng(1).normal(size=80)
    panels = {"x": (0.02, noisy, GREY, "observation $x$"), "x_hat": (0.84, wave, BLUE, r"reconstruction $\hat{x}$")}
    for left, values, colour, label in panels.values():
        ax = figure.add_axes((left, 0.3, 0.14, 0.5))
        ax.plot(t, values, color=colour)
        ax.set_axis_off()
        figure.text(left + 0.07, 0.1, label, ha="center")
    ax = figure.add_axes((0.405, 0.24, 0.19, 0.62))
    z = np.linspace(-3.2, 3.2, 300)
    ax.fill_between(z, norm.pdf(z), color="0.9")
    ax.plot(z, 0.5 * norm.pdf(z, 0.9, 0.28), color=ORANGE, linewidth=2)
    ax.plot([1.15], [0], "o", color=ORANGE, clip_on=False)
    ax.text(1.55, 0.55, r"$q(z|x)$", color=ORANGE)
    ax.text(-2.9, 0.2, "prior\n$p(z)$", color=GREY)
    ax.set_axis_off()
    figure.text(0.5, 0.1, r"code $z = \mu + \sigma\,\varepsilon$", ha="center")
    canvas = figure.add_axes((0, 0, 1, 1), zorder=-1)
    canvas.set(xlim=(0, 1), ylim=(0, 1))
    canvas.set_axis_off()
    for left, name in ((0.235, "encoder"), (0.665, "decoder")):
        box = FancyBboxPatch(
            (left, 0.42), 0.1, 0.26, boxstyle="round,pad=0.005,rounding_size=0.02", fc="#eef4fa", ec=BLUE
        )
        canvas.add_patch(box)
        canvas.text(left + 0.05, 0.55, name, ha="center", va="center")
    for start, end in ((0.17, 0.228), (0.342, 0.4), (0.6, 0.658), (0.772, 0.83)):
        arrow = FancyArrowPatch((start, 0.55), (end, 0.55), arrowstyle="-|>", mutation_scale=12, color=GREY)
        canvas.add_patch(arrow)
    save(figure, "auto_encoder")


def each_or_average():
    """Nine posteriors that each nearly equal the prior, and nine narrow ones whose average does."""
    figure, axes = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained", sharey=True)
    z = np.linspace(-3.5, 3.5, 600)
    cases = (("collapse: every posterior is the prior", 0.9999), ("wide posteriors", 0.82), ("narrow posteriors", 0.3))
    for ax, (title, width) in zip(axes, cases, strict=True):
        each = norm.pdf(z[:, None], tiling(width, 9).mu[:, 0].numpy(), width) / 9
        ax.fill_between(z, norm.pdf(z), color="0.9", label="prior")
        ax.plot(z, each, color=BLUE, linewidth=1)
        ax.plot([], [], color=BLUE, linewidth=1, label="9 posteriors (each / 9)")
        ax.plot(z, each.sum(1), color=ORANGE, linewidth=2, label="their average")
        ax.set(title=title, xlabel="$z$", yticks=[])
        ax.title.set_fontsize(10)
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    axes[0].set_ylim(0, 0.55)
    save(figure, "each_or_average")


def tiling(width, count):
    """Posteriors of one width, spread so that their average has about the prior's scale."""
    centres = norm.ppf((np.arange(count) + 0.5) / count)
    mu = torch.tensor(centres / centres.std() * np.sqrt(1 - width**2))[:, None]
    return Posterior(mu, torch.full_like(mu, width))


def exact_kl(q):
    """KL of the average of one-dimensional posteriors from the prior, by a sum over a grid."""
    z, step = np.linspace(-7, 7, 14001, retstep=True)
    density = norm.pdf(z[:, None], q.mu[:, 0].numpy(), q.sigma[:, 0].numpy()).mean(1)
    return float((density * (np.log(density + 1e-300) - norm.logpdf(z))).sum() * step)


def price_of_information():
    """Both prior terms against the width of 64 posteriors that tile the prior, and for several batch sizes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    widths = np.geomspace(0.004, 0.999, 50)
    tilings = [tiling(width, 64) for width in widths]
    left.plot(widths, [float(kl_posterior_prior(q).mean()) for q in tilings], color="black", label="AEVB: mean KL")
    left.plot(widths, [float(kl_aggregate_upper_bound(q)) for q in tilings], color=ORANGE, label="WiSE-ALE: bound")
    left.plot(widths, [exact_kl(q) for q in tilings], color=GREEN, linestyle=":", label="exact KL of the average")
    left.annotate(
        "collapse:\n0.153", (1, 0.153), (0.45, 1.0), arrowprops={"arrowstyle": "->", "color": GREY}, color=GREY
    )
    left.set(xscale="log", ylim=(-0.05, 5), xlabel="width σ of 64 posteriors that tile the prior", ylabel="nats")
    left.legend(frameon=False)
    for count, shade in zip((4, 16, 64, 256), (0.35, 0.5, 0.7, 0.95), strict=True):
        bound = [float(kl_aggregate_upper_bound(tiling(width, count))) for width in widths]
        right.plot(widths, bound, color=plt.get_cmap("Oranges")(shade), label=f"M = {count}")
    right.set(xscale="log", ylim=(-0.02, 1), xlabel="width σ", ylabel="WiSE-ALE's bound in nats")
    right.legend(frameon=False, title="batch")
    for ax in (left, right):
        ax.set_xticks([0.005, 0.02, 0.1, 0.3, 1], ["0.005", "0.02", "0.1", "0.3", "1"])
        ax.minorticks_off()
    save(figure, "price_of_information")


if __name__ == "__main__":
    auto_encoder()
    each_or_average()
    price_of_information()
