"""Options that take every word up to the next option: ``--objectives aevb wise_ale --seeds 3``."""

from __future__ import annotations

from typing import ClassVar

import click


class VariadicCommand(click.Command):
    """A command some of whose options are repeated by listing values after one name."""

    variadic: ClassVar[tuple[str, ...]] = ("--objectives", "--space")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write the name before every value, as click wants it."""
        expanded: list[str] = []
        name: str | None = None
        for position, word in enumerate(args):
            if word in self.variadic:
                name = word
                if position + 1 == len(args) or args[position + 1].startswith("--"):
                    expanded.append(word)  # nothing follows: click says so
            elif name is not None and not word.startswith("-"):
                expanded += [name, word]
            else:
                name = None
                expanded.append(word)
        return super().parse_args(ctx, expanded)
