"""The type of DATA on the command line: a dataset, or a path to the user's own file."""

from __future__ import annotations

from typing import Any

import click


class _Data(click.ParamType[str]):
    name = "data"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from wiseale.data.naming import named_data

        named = named_data(value)
        if named.note:
            click.echo(f"wiseale: {named.note}", err=True)
        return named.spec


DATA = _Data()
