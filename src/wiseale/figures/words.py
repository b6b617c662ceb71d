"""Objectives and data in words, for the titles and sentences of figures and reports."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from wiseale import config, registry
from wiseale.data.source import split_path


def objective_in_words(objective: str) -> str:
    """An objective's name in the literature, with the settings that differ from their defaults.

    >>> objective_in_words("beta_vae:beta=2"), objective_in_words("wise_ale:estimator=jensen")
    ('β-VAE (beta=2)', 'WiSE-ALE')
    """
    instance = config.build("objective", objective)
    name, values = config.parse_spec(objective)
    fields = [field for field in dataclasses.fields(instance) if getattr(instance, field.name) != field.default]
    settings = ", ".join(f"{field.name}={values[field.name]}" for field in fields)
    words = getattr(instance, "title", "") or name  # an objective of the user's own may have no title
    return f"{words} ({settings})" if settings else words


def data_in_words(data: str) -> str:
    """A dataset's name, or the name of a file or folder without its path and the options it is read with.

    >>> data_in_words("sine:n=200"), data_in_words("/home/me/sales.csv:kinds=region:label")
    ('sine', 'sales.csv')
    """
    name = data.partition(":")[0]
    if name in registry.DATASETS and not os.path.exists(os.path.expanduser(data)):
        return name
    return split_path(data)[0].name or data


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
