"""A search: trials kept in a directory, each a run of its own; unpromising ones are stopped early."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wiseale.config import SettingError, TrainConfig, from_values
from wiseale.data import Dataset, load_dataset
from wiseale.errors import DivergenceError, RunError, WiseAleError
from wiseale.experiments import request
from wiseale.experiments.space import Varied, default_space, parse_space, settings_of_trial
from wiseale.objectives import make_objective
from wiseale.platform.json_files import parse_table, read_text, record, sealed, unseal
from wiseale.platform.locks import exclusive_lock
from wiseale.runs.checkpoint import newest_state
from wiseale.runs.directory import RunDirectory
from wiseale.runs.record import RunRecord
from wiseale.runs.train import resume, start
from wiseale.training.loop import TimedEpochRecord
from wiseale.training.plan import resolve

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

Measure = Literal["elbo", "reconstruction", "loss"]

REQUEST, JOURNAL = "search.json", "trials.log"
_STARTUP = 5  # whole trials before any is stopped early
_MOST_FAILURES = 5  # in a row, before the first success


@dataclass(frozen=True)
class Search:
    """What is searched for, and where; everything lives under ``out``.

    ``base`` are the settings common to all trials, ``space`` those that vary. The measure is of the held-out rows: the
    ELBO is maximised, reconstruction error or loss minimised.
    """

    base: TrainConfig
    space: tuple[Varied, ...]
    measure: Measure
    out: Path

    @property
    def sign(self) -> float:
        """1 where a smaller measure is better, −1 where a larger one is."""
        return -1.0 if self.measure == "elbo" else 1.0

    def run_path(self, number: int) -> Path:
        """The run directory of a trial."""
        return self.out / "trials" / f"{number:04d}" / "run"

    def keep_request(self) -> None:
        """Write what the directory is for; one that holds another search, or something else, is refused."""
        if not (self.out / REQUEST).exists():
            request.refuse_other_files(self.out, "search")
        elif read_search(self.out) != self:
            raise RunError(f"{self.out} holds a search with other settings: choose another --out")
        values = asdict(self)
        del values["out"]
        request.write_request(self.out / REQUEST, sealed(values))

    def shared_data(self, dataset: Dataset) -> AbstractContextManager[None]:
        """Inside, trials read this dataset instead of parsing the user's file again."""
        self.keep_request()
        return request.shared_data(self.base, dataset, self.out)

    def study(self) -> Study:
        """The trials so far, in a file that several processes may add to."""
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        path = str(self.out / JOURNAL)
        return optuna.create_study(
            storage=JournalStorage(JournalFileBackend(path, lock_obj=JournalFileOpenLock(path))),
            study_name="wiseale",
            load_if_exists=True,
            direction="maximize" if self.measure == "elbo" else "minimize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=_STARTUP),
        )

    def trials(self) -> list[FrozenTrial]:
        """All trials so far."""
        return list(self.study().get_trials(deepcopy=False))

    def value_of(self, run: RunDirectory) -> float:
        """The measure of a finished run, of the weights that it keeps."""
        newest = newest_state(run.checkpoints)
        if newest is None:
            raise RunError(f"{run.checkpoints} holds no checkpoint that can be read")
        best = newest.progress.best_loss is not None
        terms = newest.progress.best_terms if best else run.read_metrics()[-1].held_out or {}
        if self.measure not in terms:
            raise RunError(f"the held-out rows have no {self.measure}: choose another --measure, or --held-out above 0")
        return terms[self.measure]


@dataclass(frozen=True)
class _Request:
    """The content of search.json."""

    base: dict[str, Any]
    space: tuple[Varied, ...]
    measure: Measure


def read_search(out: Path) -> Search:
    """The search kept in a directory."""
    path = out / REQUEST
    with request.reading(path, "search again"):
        kept = record(_Request, unseal(parse_table(read_text(path))))
        return Search(from_values(TrainConfig, kept.base), kept.space, kept.measure, out)


def run_search(search: Search, trials: int, ended: Callable[[FrozenTrial], None]) -> int | None:
    """Make trials until there are so many, each given to ``ended``; returns the signal that interrupted, if one did.

    A trial that a kill or an interruption left unfinished is resumed where it stopped. Several processes may work on
    one directory at the same time.
    """
    search.keep_request()
    study = search.study()
    failures = 0
    while True:
        with _next_trial(search, study, trials) as trial:
            if trial is None:
                return None
            signal = _run_trial(search, study, trial)
            if signal is not None:
                return signal
            result = study.get_trials(deepcopy=False)[trial.number]
            ended(result)
            failures = failures + 1 if result.state.name == "FAIL" else 0
            if failures == _MOST_FAILURES and not any(t.state.name == "COMPLETE" for t in study.trials):
                raise RunError(f"{failures} trials failed in a row, the last one: {result.user_attrs.get('reason')}")


@contextmanager
def _next_trial(search: Search, study: Study, most: int) -> Iterator[Trial | None]:
    """An unfinished trial that no process works on, else a new one, locked; None where there are enough."""
    import optuna
    from optuna.trial import TrialState

    with ExitStack() as lock:
        with exclusive_lock(search.out, wait=True):
            trials = study.get_trials(deepcopy=False)
            for unfinished in (trial for trial in trials if trial.state == TrialState.RUNNING):
                with suppress(BlockingIOError):
                    lock.enter_context(_lock_of(search, unfinished.number))
                    trial: Trial | None = optuna.Trial(study, unfinished._trial_id)
                    break
            else:
                trial = _new_trial(search, study) if len(trials) < most else None
                if trial is not None:
                    lock.enter_context(_lock_of(search, trial.number))
        yield trial


def _new_trial(search: Search, study: Study) -> Trial:
    """Each trial has a sampler seeded by its number: a search that is continued proposes what it would have."""
    import optuna

    seed = int(np.random.SeedSequence([search.base.seed, len(study.get_trials(deepcopy=False))]).generate_state(1)[0])
    study.sampler = optuna.samplers.TPESampler(seed=seed)
    return study.ask()


def _lock_of(search: Search, number: int) -> AbstractContextManager[None]:
    folder = search.run_path(number).parent
    folder.mkdir(parents=True, exist_ok=True)
    return exclusive_lock(folder, wait=False)


def _run_trial(search: Search, study: Study, trial: Trial) -> int | None:
    """Train to the end, to a failure, or until it is stopped as unpromising; the signal if one interrupted."""
    import optuna
    from optuna.trial import TrialState

    path, watcher = search.run_path(trial.number), _Watcher(search.measure, trial)
    run = RunDirectory(path)
    try:
        settings = settings_of_trial(search.base, {v.name: v.suggest(trial) for v in search.space})
        outcome = resume(path, watcher) if run.config.exists() else start(settings, path, watcher)
        if outcome.signal is not None:
            return outcome.signal
        study.tell(trial, search.value_of(run))
    except optuna.TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
    except (DivergenceError, WiseAleError) as error:
        trial.set_user_attr("reason", str(error))
        study.tell(trial, state=TrialState.FAIL)
    shutil.rmtree(run.checkpoints, ignore_errors=True)  # the model stays; a search of many trials would fill the disk
    return None


class _Watcher:
    """The display of a trial's run: reports the held-out measure of each epoch, stops a trial that lags behind."""

    def __init__(self, measure: Measure, trial: Trial) -> None:
        self._measure = measure
        self._trial = trial
        self._warmup = 0.0  # epochs in which the prior's weight rises: until then a trial is not stopped

    def loading(self, done: int, total: int) -> None:
        """Nothing."""

    def started(self, record: RunRecord, notes: Sequence[str]) -> None:
        """Note the length of the warm-up."""
        self._warmup = record.settings.prior_warmup

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: Mapping[str, float]) -> None:
        """Nothing."""

    def epoch(self, record: TimedEpochRecord) -> None:
        """Report the measure of an epoch on which it was taken."""
        from optuna import TrialPruned

        if (value := (record.held_out or {}).get(self._measure)) is not None:
            self._trial.report(value, record.epoch)
            if record.epoch > self._warmup and self._trial.should_prune():
                raise TrialPruned


def prepare_search(
    base: TrainConfig, given: Sequence[str], space: Sequence[str], measure: Measure | None, out: Path
) -> tuple[Search, Dataset]:
    """The search and its data."""
    varied = parse_space(space) if space else default_space(given)
    if not varied:
        raise SettingError("space", "is empty: every setting that is searched by default was given")
    for one in varied:
        if one.name in given:
            raise SettingError("space", f"searches {one.name}, which is also given: leave one of them out")
    stochastic = make_objective(base.objective).stochastic
    if measure == "elbo" and not stochastic:
        raise SettingError("measure", f"elbo: {base.objective} has a deterministic encoder and no ELBO")
    target: Measure = measure or ("elbo" if stochastic else "reconstruction")
    dataset = load_dataset(base.data, Path(base.data_root) if base.data_root else None)
    first = {one.name: one.choices[0] if one.choices else one.low for one in varied}
    resolved = resolve(settings_of_trial(base, first), dataset)  # raises where a setting is wrong
    if resolved.held_out == 0:
        raise SettingError("held_out", "must be above 0: trials are judged on held-out rows")
    return Search(replace(base, data=resolved.data), varied, target, out), dataset
