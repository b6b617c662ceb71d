"""How a run looks in a notebook: its settings, and the curves of its terms as one inline SVG, without matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Curves = Mapping[str, Mapping[str, Sequence[tuple[int, float]]]]
"""Term → ``"train"`` or ``"held out"`` → (epoch, value), in order."""

TERMS = ("loss", "reconstruction", "prior", "elbo")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 210, 130, 54, 22, 20  # pixels of a panel, and of its margins
_LINES = {"train": ("#0072B2", ""), "held out": ("#D55E00", "5 3")}  # Okabe and Ito's blue and vermilion; dashes


def curves_svg(curves: Curves) -> str:
    """One panel per term with both lines, in nats per observation; text takes the colour of the page."""
    terms = {term: curves[term] for term in TERMS if any(curves.get(term, {}).values())}
    if not terms:
        return ""
    ends = {
        term: [f"{part} {line[-1][1]:.4g} after epoch {line[-1][0]}" for part, line in lines.items() if line]
        for term, lines in terms.items()
    }
    text = escape("; ".join(f"{term}: {', '.join(values)}" for term, values in ends.items()))
    panels = "".join(_panel(term, lines, number * _WIDTH) for number, (term, lines) in enumerate(terms.items()))
    width = _WIDTH * len(terms)
    return (
        f'<svg role="img" aria-label="{text}" viewBox="0 0 {width} {_HEIGHT}" width="{width}" '
        f'style="max-width:100%;font:11px sans-serif" fill="currentColor"><title>{text}</title>{panels}</svg>'
    )


def table_html(title: str, facts: Mapping[str, str]) -> str:
    """A heading and two columns."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts.items())
    return f"<p><b>{escape(title)}</b></p><table>{rows}</table>"


def _panel(term: str, lines: Mapping[str, Sequence[tuple[int, float]]], x: int) -> str:
    finite = {part: [point for point in line if math.isfinite(point[1])] for part, line in lines.items()}
    epochs, values = zip(*(point for line in finite.values() for point in line), strict=True)
    first, last, low, high = min(epochs), max(epochs), min(values), max(values)
    across, down, right = _WIDTH - _LEFT - 8, _HEIGHT - _TOP - _BOTTOM, x + _WIDTH - 8
    parts = [
        _text(x + 8, 13, term, "start", 'font-weight="bold"'),
        f'<path d="M{x + _LEFT},{_TOP}v{down}h{across}" fill="none" stroke="currentColor" stroke-opacity=".4"/>',
        _text(x + _LEFT - 4, _TOP + 8, f"{high:.4g}"),
        _text(x + _LEFT - 4, _TOP + down, f"{low:.4g}"),
        _text(x + _LEFT, _HEIGHT - 6, f"epoch {first}", "start"),
        _text(right, _HEIGHT - 6, str(last)),
    ]
    for number, (part, line) in enumerate(finite.items()):
        colour, dash = _LINES[part]
        points = [
            (
                x + _LEFT + across * ((epoch - first) / (last - first) if last > first else 0.5),
                _TOP + down * (1 - ((value - low) / (high - low) if high > low else 0.5)),
            )
            for epoch, value in line
        ]
        path = " ".join(f"{over:.1f},{under:.1f}" for over, under in points)
        stroke = f'fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dash}" stroke-linecap="round"'
        if len(line) == 1:  # a line through one point is invisible
            parts.append(f'<circle cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="2.5" fill="{colour}"/>')
        if line:
            parts += [
                f'<polyline points="{path}" {stroke}/>',
                _text(right - 48 * (1 - number), 13, part, style=f'fill="{colour}"'),
            ]
    return "".join(parts)


def _text(x: int, y: int, words: str, anchor: str = "end", style: str = 'fill-opacity=".75"') -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" {style}>{escape(words)}</text>'
