"""The report of a search: the best settings, what mattered, and every trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from wiseale.errors import RunError, counted
from wiseale.experiments.search import Search, read_search
from wiseale.experiments.space import settings_of_trial
from wiseale.figures.style import line_style, panels, point_style, save_figure
from wiseale.figures.words import data_in_words
from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import to_json
from wiseale.report.document import Block, Commands, Document, Paragraph, Picture, Section, Table

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

BEST = "best.json"
_STATES = {"COMPLETE": "finished", "PRUNED": "stopped early", "FAIL": "failed", "RUNNING": "unfinished"}


def search_document(out: Path) -> Document:
    """The report of what is done so far; writes the figure, and the best settings for ``--config``."""
    search = read_search(out)
    trials = search.trials()
    finished = [trial for trial in trials if trial.state.name == "COMPLETE" and trial.value is not None]
    if not finished:
        raise RunError(f"{out} has no finished trial yet: call `wiseale search` again to continue")
    best = best_trial(search, finished)
    states = [_STATES.get(trial.state.name, trial.state.name) for trial in trials]
    counts = ", ".join(f"{states.count(state)} {state}" for state in _STATES.values() if state in states)
    data = data_in_words(search.base.data)
    lead = f"{counted(len(trials), 'trial')} on {data}: {counts}. Nats per observation of the held-out rows."
    sections = (
        Section("Best settings", _best_blocks(search, best)),
        Section("What mattered", tuple(_influence(search, finished))),
        Section("All trials", (_trial_table(search, trials),)),
    )
    return Document(f"Search on {data}", lead, sections)


def best_trial(search: Search, finished: Sequence[FrozenTrial]) -> FrozenTrial:
    """The finished trial with the best measure."""
    return min(finished, key=lambda trial: search.sign * (trial.value if trial.value is not None else math.inf))


def _best_blocks(search: Search, best: FrozenTrial) -> tuple[Block, ...]:
    settings = settings_of_trial(search.base, {name: str(value) for name, value in best.params.items()})
    given = {name: value for name, value in vars(settings).items() if value is not None}
    write_text(search.out / BEST, to_json(given))
    rows = tuple((name, str(value)) for name, value in best.params.items())
    run = search.run_path(best.number).relative_to(search.out)
    return (
        Paragraph(f"Trial {best.number}: held-out {search.measure} {best.value:.4f}."),
        Table("best", ("setting", "value"), rows),
        Paragraph(
            "The held-out rows chose these settings, so their measure flatters them: judge the model on test rows, as "
            "the first command does where the data has some. The second trains the settings again."
        ),
        Commands((f"wiseale evaluate {search.out / run}", f"wiseale train --config {search.out / BEST} --out RUN")),
    )


def _influence(search: Search, finished: Sequence[FrozenTrial]) -> list[Block]:
    """The figure, and from 10 finished trials on the importance of each setting."""
    import optuna

    varied = [v.name for v in search.space]
    settings = {name: [_number(trial.params[name]) for trial in finished] for name in varied}
    values = [trial.value for trial in finished if trial.value is not None]
    (search.out / "figures").mkdir(exist_ok=True)
    figure = trial_figure(values, settings, search.measure, larger_is_better=search.sign < 0)
    path = save_figure(figure, search.out / "figures" / "trials")
    blocks: list[Block] = [Picture(path, "Every finished trial: in order, and by each setting.")]
    if len(finished) >= 10 and len(varied) > 1 and max(values) > min(values):
        evaluator = optuna.importance.PedAnovaImportanceEvaluator(evaluate_on_local=False)
        shares = optuna.importance.get_param_importances(search.study(), evaluator=evaluator)
        rows = tuple((name, f"{share:.2f}") for name, share in shares.items())
        caption = "Share of the differences between good and other trials that each setting explains (PED-ANOVA)."
        blocks.append(Table("importance", ("setting", "importance"), rows, caption))
    return blocks


def _number(value: object) -> float | str:
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def _trial_table(search: Search, trials: Sequence[FrozenTrial]) -> Table:
    varied = [v.name for v in search.space]
    rows = []
    for trial in trials:
        epochs = str(max(trial.intermediate_values, default=0))
        value = "" if trial.value is None or trial.state.name != "COMPLETE" else f"{trial.value:.4f}"
        values = [trial.params.get(name, "") for name in varied]
        settings = (f"{one:.4g}" if isinstance(one, float) else str(one) for one in values)
        note = str(trial.user_attrs.get("reason", ""))
        rows.append((str(trial.number), _STATES.get(trial.state.name, ""), value, epochs, *settings, note))
    columns = ("trial", "state", f"held-out {search.measure}", "epochs", *varied, "note")
    return Table("trials", columns, tuple(rows), "A trial stopped early was behind the median of the others.")


def trial_figure(
    values: Sequence[float], settings: Mapping[str, Sequence[float | str]], measure: str, larger_is_better: bool
) -> Figure:
    """A panel with the trials in order and the best so far, then one per setting; all sequences have one length."""
    figure, panel = panels(1 + len(settings), 3, 2.9, 2.6)
    first, *others = panel
    best, sofar = [], None
    for value in values:
        sofar = value if sofar is None else max(sofar, value) if larger_is_better else min(sofar, value)
        best.append(sofar)
    colour, marker = point_style(0)
    first.plot(range(1, len(values) + 1), values, marker, color=colour, markersize=4, alpha=0.7, label="trial")
    first.step(range(1, len(values) + 1), best, color=line_style(1)[0], where="post", label="best so far")
    first.set_xlabel("finished trial")
    first.legend(fontsize=8)
    first.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    for (name, setting), ax in zip(settings.items(), others, strict=True):
        numbers = [value for value in setting if isinstance(value, int | float)]
        if len(numbers) == len(setting):
            ax.plot(numbers, values, marker, color=colour, markersize=4, alpha=0.7)
            if min(numbers) > 0 and max(numbers) >= 10 * min(numbers):
                ax.set_xscale("log")
        else:
            words = sorted({str(value) for value in setting}, key=lambda word: (len(word), word))
            ax.plot([words.index(str(v)) for v in setting], values, marker, color=colour, markersize=4, alpha=0.7)
            ax.set_xticks(range(len(words)), words)
        ax.set_xlabel(name)
    for ax in panel:
        ax.grid(alpha=0.25)
    first.set_title(f"held-out {measure} (nats)", fontsize=10)
    return figure
