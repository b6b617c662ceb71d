"""How a run looks in a notebook: its settings, and the curves of its terms as one inline SVG, without matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[int, float]]
"""(epoch, value), in order."""

Curves = Mapping[str, Mapping[str, Points]]
"""Term → ``"train"`` or ``"held out"`` → its points."""

TERMS = ("loss", "reconstruction", "prior", "elbo")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 210, 130, 54, 22, 20  # pixels of a panel, and of its margins
_LINES = {"train": ("#0072B2", ""), "held out": ("#D55E00", "5 3")}  # Okabe and Ito's blue and vermilion; dashes


def curves_svg(curves: Curves) -> str:
    """One panel per term with both lines, in nats per observation; text takes the colour of the page."""
    terms = [(term, curves[term]) for term in TERMS if any(curves.get(term, {}).values())]
    if not terms:
        return ""
    panels = "".join(_panel(term, lines, number * _WIDTH) for number, (term, lines) in enumerate(terms))
    width = _WIDTH * len(terms)
    text = "; ".join(f"{term}: {_last_values(lines)}" for term, lines in terms)
    return (
        f'<svg role="img" aria-label="{escape(text)}" viewBox="0 0 {width} {_HEIGHT}" width="{width}" '
        'style="max-width:100%;font:11px sans-serif" fill="currentColor">'
        f"<title>{escape(text)}</title>{panels}</svg>"
    )


def table_html(title: str, facts: Mapping[str, str]) -> str:
    """A heading and two columns."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    return f"<p><b>{escape(title)}</b></p><table>{rows}</table>"


def _last_values(lines: Mapping[str, Points]) -> str:
    ends = [f"{part} {points[-1][1]:.4g} after epoch {points[-1][0]}" for part, points in lines.items() if points]
    return ", ".join(ends)


def _panel(term: str, lines: Mapping[str, Points], x: int) -> str:
    points = [point for line in lines.values() for point in line if math.isfinite(point[1])]
    low, high = min(value for _, value in points), max(value for _, value in points)
    first, last = min(epoch for epoch, _ in points), max(epoch for epoch, _ in points)
    across, down = _WIDTH - _LEFT - 8, _HEIGHT - _TOP - _BOTTOM

    def place(epoch: int, value: float) -> str:
        right = (epoch - first) / (last - first) if last > first else 0.5
        up = (value - low) / (high - low) if high > low else 0.5
        return f"{x + _LEFT + across * right:.1f},{_TOP + down * (1 - up):.1f}"

    parts = [
        f'<text x="{x + 8}" y="13" font-weight="bold">{escape(term)}</text>',
        f'<path d="M{x + _LEFT},{_TOP}v{down}h{across}" fill="none" stroke="currentColor" stroke-opacity=".4"/>',
        _text(x + _LEFT - 4, _TOP + 8, f"{high:.4g}", "end"),
        _text(x + _LEFT - 4, _TOP + down, f"{low:.4g}", "end"),
        _text(x + _LEFT, _HEIGHT - 6, f"epoch {first}"),
        _text(x + _WIDTH - 8, _HEIGHT - 6, str(last), "end"),
    ]
    for number, (part, line) in enumerate(lines.items()):
        if not line:
            continue
        colour, dash = _LINES[part]
        drawn = " ".join(place(epoch, value) for epoch, value in line if math.isfinite(value))
        parts.append(
            f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dash}"'
            + ' stroke-linecap="round"/>'
        )
        if len(line) == 1:  # a line through one point is invisible
            across_at, down_at = drawn.split(",")
            parts.append(f'<circle cx="{across_at}" cy="{down_at}" r="2.5" fill="{colour}"/>')
        parts.append(
            f'<text x="{x + _WIDTH - 8 - 48 * (1 - number)}" y="13" text-anchor="end" fill="{colour}">{part}</text>'
        )
    return "".join(parts)


def _text(x: int, y: int, words: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill-opacity=".75">{escape(words)}</text>'
