"""``python -m torture.mutations``: undo each protection in a copy of the source; some test must fail.

A test that passes on code without the protection it is about proves nothing. Each line of ``MUTATIONS`` takes one away
by replacing a piece of source, and names the tests that must notice.
"""

# ruff: noqa: E501 (one line for each mutation)

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutation(NamedTuple):
    """A piece of a source file under ``src/wiseale``, what to put in its place, and the tests that must fail.

    ``file`` is where the piece was when the line was written; it may have moved since, see :func:`file_of`.
    """

    what: str
    file: str
    old: str
    new: str
    tests: str


TRUST, HISTORY, STRANGE = (
    "tests/kernels/test_trust.py",
    "tests/runs/test_history.py",
    "tests/models/test_strange_models.py",
)
ROLES, ROWS = "tests/test_roles.py", "tests/runs/test_run.py"
PACK, FAULTS, FILES = "tests/data/test_pack.py", "tests/cli/test_faults.py", "tests/platform/test_atomic_files.py"
JSON = "tests/platform/test_json_files.py"
LOCKS, ENGINES = "tests/platform/test_locks.py", "tests/experiments/test_engines.py"
TABLE, SPACES, KINDS = "tests/test_table_likelihood.py", "tests/spaces", "tests/data/test_kinds.py"
DEFAULTS, LISTS, FINGERPRINT = (
    "tests/data/test_defaults.py",
    "tests/data/test_lists.py",
    "tests/data/test_fingerprint.py",
)
DRAWS, LOOP, INFERENCE = "tests/test_randomness.py", "tests/training/test_loop.py", "tests/models/test_inference.py"
PAIRS, COLLAPSE, EXITS = (
    "tests/divergences/test_pairwise.py",
    "tests/models/test_collapse.py",
    "tests/cli/test_exit_codes.py",
)
CLAIMS, INTERVALS = "tests/paper/test_claims.py", "tests/experiments/test_intervals.py"

MUTATIONS = (
    Mutation("library: checksum", "kernels/build.py", "return private and _record", "return private or _record", TRUST),
    Mutation("library: owner", "kernels/build.py", "or status.st_uid == os.geteuid()", "or True", TRUST),
    Mutation("library: folder's mode", "kernels/build.py", "if _others_may_write(status):", "if False:", TRUST),
    Mutation("library: symbolic link", "kernels/build.py", "if not stat.S_ISDIR(status.st_mode):", "if False:", TRUST),
    Mutation("library: private folder", "kernels/build.py", "mode=0o700", "mode=0o777", TRUST),
    Mutation("library: self-test", "kernels/build.py", "if not all(math", "if any(() for a in [] if math", "tests/kernels/test_build.py"),
    Mutation("pack: checksum", "data/images/pack.py", "if sha256(images) != manifest.images_sha256:", "if False:", PACK),
    Mutation("pack: stamp", "data/images/pack.py", "if check or not _is_verified(", "if check and not _is_verified(", PACK),
    Mutation("pack: factors", "data/images/pack.py", "!= manifest.factors_sha256", "== 0", PACK),
    Mutation("pack: manifest", "data/images/pack.py", "record(cls, unseal(values))", "record(cls, {k: v for k, v in values.items() if k != 'sha256'})", PACK),
    Mutation("pack: resumed rows", "data/images/pack_writer.py", "self._row_bytes)) == crc:", "self._row_bytes)) != -1:", PACK),
    Mutation("disk: errors in words", "cli/faults.py", "if isinstance(error, OSError):", "if False:", FAULTS),
    Mutation("disk: safetensors", "models/tensor_files.py", "except SafetensorError as error:\n        number", "except KeyError as error:\n        number", FAULTS),
    Mutation("disk: no partial file", "platform/atomic_files.py", "temporary.unlink(missing_ok=True)", "pass", FILES),
    Mutation("history: metrics", "runs/record.py", "if len(content) != self.metrics_bytes or", "if False and", HISTORY),
    Mutation("history: consecutive epochs", "runs/directory.py", "if one.epoch != first + number:", "if False:", "tests/runs"),
    Mutation("JSON: depth", "platform/json_files.py", "except RecursionError:", "except KeyError:", JSON),
    Mutation("JSON: types", "platform/json_files.py", "return type(value) is hint", "return True", JSON),
    Mutation("JSON: booleans", "platform/json_files.py", "if type(value) is int and", "if isinstance(value, int) and", f"{JSON} {STRANGE}"),
    Mutation("JSON: seal", "platform/json_files.py", "if values.get(_SEAL) !=", "if False and 0 !=", JSON),
    Mutation("JSON: pipes", "platform/json_files.py", "if not stat.S_ISREG(os.stat(path).st_mode):", "if False:", f"{JSON} {PACK}"),
    Mutation("resume: experiment", "runs/record.py", "if run.experiment != self.experiment:", "if False:", HISTORY),
    Mutation("resume: initial model", "runs/train.py", "if _initial_digest(settings) != started.init_from:", "if False:", HISTORY),
    Mutation("resume: free settings", "runs/record.py", 'and name != "data")', 'and name not in ("data", "likelihood"))', ROLES),
    Mutation("resume: edited data", "runs/train.py", "if dataset.fingerprint != before.facts.data_fingerprint:", "if False:", "tests/runs"),
    Mutation("restart: another run", "runs/train.py", "if (config.build(SPECS[name], wanted) if name in SPECS else wanted) !=", "if () ==", HISTORY),
    Mutation("roles: initial model", "config/__init__.py", 'finished run or model", role="science"', 'finished run or model", role="machine"', ROLES),
    Mutation("roles: precision", "config/__init__.py", 'the forward pass", role="science"', 'the forward pass", role="machine"', ROLES),
    Mutation("roles: seed is searched", "config/__init__.py", 'run follows from it", role="science", given=True', 'run follows from it", role="science"', ROLES),
    Mutation("rows: held out", "runs/run.py", 'numbers = held_out if split == "held out"', 'numbers = held_out if split == "train"', ROWS),
    Mutation("rows: unseen", "runs/run.py", "| np.isin(numbers, held_out)", "", ROWS),
    Mutation("rows: evenly spaced", "runs/run.py", "np.linspace(0, n - 1,", "np.linspace(0, n - 2,", ROWS),
    Mutation("rows: data has changed", "runs/run.py", "if self.held_out_of(dataset) is None:", "if False:", ROWS),
    Mutation("rows: shape", "runs/run.py", "if dataset.x_shape != codec.model.x_shape:", "if False:", ROWS),
    Mutation("collapse: threshold", "models/collapse.py", "LEAST_INFORMATION = 0.1", "LEAST_INFORMATION = 0.2", "tests/models/test_collapse.py"),
    Mutation("resume: rounding", "runs/record.py", 'to the last bit"] if changes else []', 'to the last bit"] if 0 else []', "tests/runs/test_environment.py"),
    Mutation("resume: forged progress", "runs/checkpoint.py", "if min(progress.epoch, progress.best_epoch) < 0 or", "if False and", HISTORY),
    Mutation("model: NaN", "models/model_file.py", "_refuse_useless(directory / WEIGHTS, state)", "pass", STRANGE),
    Mutation("model: empty manifest", "platform/atomic_files.py", "for name in required:", "for name in ():", STRANGE),
    Mutation("model: sizes before memory", "models/model_file.py", "wanted = model_config.headers()", "wanted = {n: header_of(t) for n, t in model_config.build().state_dict().items()}", STRANGE),
    Mutation("model: pinned digest", "models/model_file.py", "if sha256 is not None and", "if False and", HISTORY),
    Mutation("writers: own names", "platform/atomic_files.py", "{os.getpid()}-{secrets.token_hex(4)}", "x", FILES),
    Mutation("writers: one step", "platform/atomic_files.py", "if _exchange(source, target):", "if False:", FILES),
    Mutation("writers: user's README", "models/model_file.py", "has_card = CARD_MARK in read_text(directory / CARD).splitlines()[:2]", "has_card = True", STRANGE),
    Mutation("writers: readable weights", "models/model_file.py", "path.chmod(0o666 & ~mask)", "pass", STRANGE),
    Mutation("writers: leftovers", "platform/atomic_files.py", "_remove(path)", "pass", FILES),
    Mutation("numbers: memory", "training/setup.py", "require_memory(8 * ", "require_memory(0 * ", FAULTS),
    Mutation("numbers: Bernoulli", "likelihoods/likelihood.py", "if not (low <= smallest and largest <= high) and (low, high) != (-math.inf, math.inf):", "if False:", "tests/test_one_door.py tests/test_likelihoods.py tests/cli/test_command_line.py"),
    Mutation("terminal: escapes", "cli/faults.py", "(*range(0x20), *range(0x7F, 0xA0))", "()", FAULTS),
    Mutation("signals: SIGHUP", "platform/machine.py", '"SIGTERM", "SIGHUP"', '"SIGTERM"', FAULTS),
    Mutation("signals: compare", "cli/__init__.py", 'return _report("interrupted", 143)', "return 1", FAULTS),
    Mutation("signals: closed pipe", "runs/recorder.py", "self._received = SIGPIPE", "raise", FAULTS),
    Mutation("power: nothing synced", "platform/atomic_files.py", "os.fsync(descriptor)", "pass", "tests/test_torture.py -k power"),
    Mutation("power: removal before sync", "platform/atomic_files.py", "        return source\n", "        shutil.rmtree(source)\n        return None\n", "tests/test_torture.py -k power"),
    Mutation("saving: copies", "runs/checkpoint.py", "tensor.detach().cpu().clone() for", "tensor.detach().cpu() for", "tests/runs/test_background.py"),
    Mutation("threads: sleep", "platform/machine.py", '= "PASSIVE"', '= "ACTIVE"', "tests/platform/test_waiting_threads.py"),
    Mutation("locks: seconds", "platform/locks.py", "if isinstance(wait, bool) else wait", "if wait else 0", LOCKS),
    Mutation("locks: no locks", "platform/locks.py", "if error.errno in _WITHOUT_LOCKS:", "if False:", LOCKS),
    Mutation("locks: one comparison", "experiments/comparison.py", "with reserved(self.out) if part is None else nullcontext():", "with nullcontext():", ENGINES),
    Mutation("locks: array", "experiments/comparison.py", "with reserved(self.out) if part is None else nullcontext():", "with reserved(self.out):", ENGINES),
    Mutation("jobs: still saving", "experiments/job.py", "wait=_SAVING_SECONDS)", "wait=False)", ENGINES),
    Mutation("jobs: array", "cli/options.py", "work[self.number - 1 ::", "work[self.number ::", ENGINES),
    Mutation("archive: leftovers", "models/archive.py", 'clear_leftovers(shard.out.parent, f".{shard.out.name}.")', "pass", "tests/models/test_archive.py"),
    Mutation("ranks: loading", "processes/group.py", "dist.barrier(group=loading)", "pass", "tests/processes/test_group.py"),
    Mutation("ranks: silent rank", "processes/group.py", 'died = "Timed out" not in str(error)', "died = True", "tests/processes/test_group.py"),
    Mutation("ranks: lost store", "processes/group.py", "question.join(_STORE_SECONDS)", "question.join(60)", "tests/processes/test_group.py"),
    Mutation("names: folder hides dataset", "data/__init__.py", "return name not in registry.DATASETS and", "return", "tests/data/test_naming.py"),
    # Roles, registries and lists
    Mutation("roles: likelihood", "config.py", 'table is chosen for columns with kinds",\n        role="science"', 'table is chosen for columns with kinds",\n        role="machine"', ROLES),
    Mutation("roles: held-out rows are searched", "config.py", '        "part of the training rows kept to watch the loss on (default: 0.1 of your own data, else 0.05)",\n        role="science",\n        given=True,', '        "part of the training rows kept to watch the loss on (default: 0.1 of your own data, else 0.05)",\n        role="science",', ROLES),
    Mutation("environment: threads", "runs/record.py", '_ROUNDING = ("kernels", "torch", "machine", "threads", "device")', '_ROUNDING = ("kernels", "torch", "machine", "device")', "tests/runs/test_environment.py"),
    Mutation("environment: likelihood of the machine", "runs/record.py", "asdict(self.facts)], sort_keys=True)", "{k: v for k, v in asdict(self.facts).items() if k != 'standardized'}], sort_keys=True)", "tests/runs/test_record.py"),
    Mutation("registry: a system", "registry.py", '    "dip_vae": "wiseale.objectives.dip_vae:DipVae",\n', "", LISTS),
    Mutation("registry: other names", "registry.py", '"vae": "aevb"', '"vae": "wise_ale"', LISTS),
    Mutation("files: Feather", "data/source.py", '    ".feather": "wiseale.data.tables.table:ArrowFile",\n', "", LISTS),
    Mutation("files: TSV", "data/source.py", '    ".tsv": "wiseale.data.tables.csv_table:CsvFile",\n', "", LISTS),
    Mutation("files: read alike", "data/source.py", '"header", "decimal",', '"header",', LISTS),
    Mutation("files: image types", "data/images/images.py", '".tiff", ".webp"', '".tiff"', LISTS),
    Mutation("files: missing words", "data/tables/raw.py", '"na", "n/a",', '"na",', LISTS),
    Mutation("signals: SIGTERM", "platform/signals.py", '"SIGINT", "SIGTERM",', '"SIGINT",', "tests/runs/test_kill_and_resume.py"),
    Mutation("extras: MLflow", "runs/loggers/mlflow.py", 'extra: ClassVar[str] = "mlflow"', 'extra: ClassVar[str] = "ml-flow"', "tests/test_release.py"),
    Mutation("extras: explorer", "cli/models.py", "packages that are missing: pip install 'wiseale[explore]'", "packages that are missing: pip install 'wiseale[explorer]'", "tests/test_release.py"),
    Mutation("presets: sine", "data/sets/sine.py", "max_epochs=50,\n                lr=5e-4,", "max_epochs=50,\n                lr=5e-3,", "tests/data/test_sine.py"),
    Mutation("presets: ours", "training/plan.py", 'dataset.ours if asked.recipe == "ours" else {}', "dataset.ours", "tests/data/test_sine.py"),
    # Defaults of people's own data
    Mutation("defaults: part held out", "data/defaults.py", "HELD_OUT = 0.1\n", "HELD_OUT = 0.01\n", DEFAULTS),
    Mutation("defaults: patience in steps", "data/defaults.py", "PATIENCE_STEPS = 800", "PATIENCE_STEPS = 80", DEFAULTS),
    Mutation("defaults: patience in epochs", "data/defaults.py", "PATIENCE_EPOCHS = 5", "PATIENCE_EPOCHS = 1", DEFAULTS),
    Mutation("defaults: watching", "data/defaults.py", "WATCH_STEPS = 20", "WATCH_STEPS = 200", DEFAULTS),
    Mutation("defaults: unwatched", "data/defaults.py", "UNWATCHED_STEPS = 3_000", "UNWATCHED_STEPS = 300", DEFAULTS),
    Mutation("defaults: longest", "data/defaults.py", "MOST_STEPS = 30_000", "MOST_STEPS = 3_000", DEFAULTS),
    Mutation("defaults: a patience asked for", "data/defaults.py", "automatic = watched and max_epochs is None", "automatic = watched", DEFAULTS),
    Mutation("defaults: size of the code", "data/defaults.py", "latent_dim=min(8,", "latent_dim=min(80,", DEFAULTS),
    Mutation("defaults: batch", "data/defaults.py", "batch_size=min(64,", "batch_size=min(640,", DEFAULTS),
    Mutation("defaults: rate", "data/defaults.py", "lr=5e-4,\n        held_out=HELD_OUT", "lr=5e-3,\n        held_out=HELD_OUT", DEFAULTS),
    Mutation("defaults: uint8", "data/defaults.py", '"unit" if x.dtype == np.uint8 and not _holds_only(x, 0, 1) else "values"', '"unit" if x.dtype == np.uint8 else "values"', DEFAULTS),
    Mutation("defaults: black and white", "data/defaults.py", '_holds_only(x, 0, 255 if reading == "unit" else 1)', "_holds_only(x, 0, 1)", DEFAULTS),
    Mutation("defaults: scaling", "data/defaults.py", 'return space.default_scaling if likelihood.standardizes else "none"', 'return "columns" if likelihood.standardizes else "none"', DEFAULTS),
    Mutation("defaults: most held out", "training/split.py", "MOST_HELD_OUT = 50_000", "MOST_HELD_OUT = 500_000", "tests/training/test_split.py"),
    Mutation("defaults: two rows are left", "training/split.py", "most, n - 2) if n > 2", "most, n - 1) if n > 2", "tests/training/test_split.py"),
    Mutation("defaults: constant columns", "spaces/space.py", "deviation > 1e-12 *", "deviation > 1e-3 *", SPACES),
    Mutation("defaults: rounding is no spread", "spaces/space.py", "deviation > 1e-12 *", "deviation > 0 *", SPACES),
    Mutation("defaults: constant entries", "spaces/features.py", "torch.where(scale > 1e-6, scale, 1.0)", "torch.where(scale > -1, scale, 1.0)", SPACES),
    # Kinds of columns
    Mutation("kinds: likely levels", "data/tables/kinds.py", "_LIKELY_LEVELS = 256", "_LIKELY_LEVELS = 2560", KINDS),
    Mutation("kinds: sure levels", "data/tables/kinds.py", "_SURE_LEVELS = 20 ", "_SURE_LEVELS = 200 ", KINDS),
    Mutation("kinds: fewer sure levels", "data/tables/kinds.py", "_SURE_LEVELS = 20 ", "_SURE_LEVELS = 2 ", KINDS),
    Mutation("kinds: levels of half the rows", "data/tables/kinds.py", "count <= facts.observed / 2)", "count <= facts.observed)", KINDS),
    Mutation("kinds: rare", "data/tables/kinds.py", "_RARE = 5 ", "_RARE = 50 ", KINDS),
    Mutation("kinds: exactly rare", "data/tables/kinds.py", "if count >= _RARE and", "if count > _RARE and", KINDS),
    Mutation("kinds: two levels are left", "data/tables/kinds.py", "if len(kept) < 2 or not", "if not", KINDS),
    Mutation("kinds: highest count", "data/tables/kinds.py", "_HIGHEST_COUNT = 1_000", "_HIGHEST_COUNT = 10_000", KINDS),
    Mutation("kinds: counts start at 0", "data/tables/kinds.py", "facts.low == 0 and 3 <=", "facts.low >= 0 and 3 <=", KINDS),
    Mutation("kinds: counts reach 3", "data/tables/kinds.py", "3 <= facts.high <=", "30 <= facts.high <=", KINDS),
    Mutation("kinds: counts are mostly small", "data/tables/kinds.py", "mean < facts.high / 3", "mean < facts.high / 30", KINDS),
    Mutation("kinds: dates", "data/tables/kinds.py", "> 0.9 * count:", "> 0.09 * count:", KINDS),
    Mutation("kinds: row numbers of few rows", "data/tables/kinds.py", "if name.isdecimal() or rows <= _SURE_LEVELS:", "if name.isdecimal():", KINDS),
    Mutation("kinds: most levels", "spaces/columns.py", "MOST_LEVELS = 1_000", "MOST_LEVELS = 10_000", KINDS),
    Mutation("kinds: dispersion", "data/tables/kinds.py", "    if variance <= mean:\n", "    if variance <= 10 * mean:\n", KINDS),
    Mutation("kinds: dispersion judged", "data/tables/kinds.py", "return bool(negative_binomial > stats", "return bool(negative_binomial < stats", KINDS),
    Mutation("kinds: dispersion judged on other rows", "data/tables/kinds.py", "fitted, judged = cells[::2], cells[1::2]", "fitted, judged = cells[::2], cells[::2]", KINDS),
    # Clamps and floors
    Mutation("start: one scale of a table's links", "likelihoods/mixed.py", "weights * 2.0**-k) for k in range(5)]", "weights * 2.0**-k) for k in range(1)]", f"tests/training/test_start.py {TABLE}"),
    Mutation("start: one scale of binary links", "likelihoods/likelihood.py", "weights * 2.0**-k) for k in range(5)]", "weights * 2.0**-k) for k in range(1)]", "tests/training/test_start.py"),
    Mutation("start: log odds of constants", "likelihoods/bernoulli.py", "p = mean.clamp(0.01, 0.99)", "p = mean.clamp(1e-9, 1 - 1e-9)", "tests/training/test_start.py"),
    Mutation("start: steep binary link", "likelihoods/bernoulli.py", ".clamp_min(0.05)[:, None]", ".clamp_min(1e-9)[:, None]", "tests/training/test_start.py"),
    Mutation("start: log odds of a constant column", "likelihoods/bernoulli.py", "p = mean.clamp(0.01, 0.99)", "p = mean.clamp(1e-9, 1 - 1e-9)", TABLE),
    Mutation("start: unseen levels", "likelihoods/mixed.py", "p = mean[part].clamp_min(0.5 / len(x))", "p = mean[part]", TABLE),
    Mutation("start: counts of 0", "likelihoods/mixed.py", "nan_to_num(1.0).clamp_min(1e-3).log()", "nan_to_num(1.0).log()", TABLE),
    Mutation("clamp: rates", "likelihoods/mixed.py", "HIGHEST_LOG_RATE = 25.0", "HIGHEST_LOG_RATE = 250.0", TABLE),
    Mutation("clamp: lower rates", "likelihoods/mixed.py", "HIGHEST_LOG_RATE = 25.0", "HIGHEST_LOG_RATE = 2.5", TABLE),
    Mutation("clamp: dispersion", "likelihoods/mixed.py", "_DISPERSIONS = (-5.0, 16.0)", "_DISPERSIONS = (-5.0, 160.0)", TABLE),
    Mutation("clamp: least dispersion", "likelihoods/mixed.py", "_DISPERSIONS = (-5.0, 16.0)", "_DISPERSIONS = (-500.0, 16.0)", TABLE),
    Mutation("floor: noise of numbers", "likelihoods/mixed.py", "return self.log_x_sigma.exp() + self.x_sigma_min", "return self.log_x_sigma.exp()", TABLE),
    Mutation("floor: sigma", "networks/model.py", "positive + self.sigma_min)", "positive)", "tests/networks/test_networks.py"),
    Mutation("floor: sigma in the kernels", "kernels/pairs.py", "_MIN_SIGMA = 1e-15", "_MIN_SIGMA = 1e-30", PAIRS),
    Mutation("kernels: negligible pairs", "kernels/pairs.py", "torch.finfo(torch.float32).eps ** 2", "torch.finfo(torch.float32).eps", PAIRS),
    Mutation("streaming: range of widths", "divergences/streaming.py", "_WIDEST = 300.0", "_WIDEST = 3000.0", PAIRS),
    Mutation("collapse: active units", "models/collapse.py", "ACTIVE_VARIANCE = 0.01", "ACTIVE_VARIANCE = 0.1", COLLAPSE),
    Mutation("collapse: idle units", "models/collapse.py", "ACTIVE_VARIANCE = 0.01", "ACTIVE_VARIANCE = 0.001", COLLAPSE),
    Mutation("collapse: few rows", "models/collapse.py", "ENOUGH_ROWS = 200", "ENOUGH_ROWS = 2", COLLAPSE),
    # Draws
    Mutation("draws: purposes", "randomness.py", "map(str, (seed, purpose, *counters))", "map(str, (seed, *counters))", DRAWS),
    Mutation("draws: counters", "randomness.py", "map(str, (seed, purpose, *counters))", "map(str, (seed, purpose, *counters[:1]))", DRAWS),
    Mutation("draws: measures", "evaluation/case.py", "PATHS = 8", "PATHS = 7", DRAWS),
    Mutation("draws: noise of a step", "training/loop.py", "plan.seed, purpose, counter)", "plan.seed, purpose, 0)", LOOP),
    Mutation("draws: objective", "training/loop.py", 'generator(plan.seed, "objective", counter)', 'generator(plan.seed, "objective", 0)', LOOP),
    Mutation("draws: order of an epoch", "training/loop.py", '"order", progress.epoch)', '"order", 0)', LOOP),
    Mutation("draws: hidden cells", "training/hidden_cells.py", 'generator(seed, "hide", step)', 'generator(seed, "hide", 0)', LOOP),
    Mutation("draws: blocks of samples", "models/inference.py", 'generator(seed, "sample", block, 0)', 'generator(seed, "sample", 0, 0)', INFERENCE),
    Mutation("draws: held-out rows", "training/split.py", 'shuffled(n, seed, "held out")', 'shuffled(n, 0, "held out")', "tests/training/test_split.py"),
    # Scores
    Mutation("score: opposite noise", "models/inference.py", "torch.cat([half, -half])", "torch.cat([half, half])", INFERENCE),
    Mutation("score: draws", "models/inference.py", "SCORE_DRAWS, IMPUTATION_DRAWS = 16, 64", "SCORE_DRAWS, IMPUTATION_DRAWS = 2, 64", INFERENCE),
    Mutation("score: Jacobian", "models/inference.py", "kl_posterior_prior(posterior) + log_jacobian)", "kl_posterior_prior(posterior) - log_jacobian)", INFERENCE),
    Mutation("score: Jacobian of missing cells", "spaces/units.py", "return -(log_scale * ~x.isnan().to(log_scale.device))", "return -(log_scale * torch.ones_like(x))", SPACES),
    # The loop
    Mutation("loop: cells are hidden in training alone", "training/loop.py", 'if purpose == "noise" else x', "", LOOP),
    Mutation("loop: cells are hidden", "training/loop.py", 'if purpose == "noise" else x', 'if purpose == "objective" else x', LOOP),
    Mutation("loop: share of hidden cells", "training/hidden_cells.py", "draws < model.likelihood.hidden", "draws > model.likelihood.hidden", LOOP),
    Mutation("stopping: warm-up", "training/loop.py", "or 0 < progress.epoch < plan.prior_warmup", "", LOOP),
    Mutation("stopping: patience after the warm-up", "training/loop.py", "max(progress.best_epoch, math.ceil(plan.prior_warmup))", "progress.best_epoch", LOOP),
    Mutation("stopping: ties", "training/loop.py", 'held_out["loss"] < progress.best_loss', 'held_out["loss"] <= progress.best_loss', LOOP),
    Mutation("stopping: patience", "training/loop.py", "since >= plan.patience", "since > plan.patience", LOOP),
    Mutation("stopping: the start counts", "training/loop.py", "if progress.step == 0 and plan.patience", "if progress.step < 0 and plan.patience", LOOP),
    Mutation("stopping: watching", "training/loop.py", "watched = progress.epoch % plan.watch_every == 0 or progress", "watched = progress", LOOP),
    Mutation("stopping: last epoch is watched", "training/loop.py", "or progress.epoch == plan.max_epochs\n", "\n", LOOP),
    Mutation("stopping: kept epoch", "training/learner.py", "return self.epoch if self.best_loss is None else self.best_epoch", "return self.epoch", LOOP),
    Mutation("stopping: kept weights", "training/learner.py", "self.modules.load_state_dict(self.best)", "pass", LOOP),
    Mutation("loop: warm-up ends", "training/loop.py", "min(1.0, progress.step / warmup_steps)", "progress.step / warmup_steps", LOOP),
    Mutation("loop: clipping", "training/loop.py", "if plan.max_grad_norm is not None:", "if False:", LOOP),
    Mutation("loop: checkpoints in time", "training/loop.py", "progress.step % plan.checkpoint_every == 0 or stop", "progress.step % (2 * plan.checkpoint_every) == 0 or stop", LOOP),
    Mutation("checkpoints: two are kept", "runs/checkpoint.py", "_KEPT = 2", "_KEPT = 1", "tests/runs"),
    # Exit codes
    Mutation("exit: the user's error", "cli/__init__.py", 'return _report(f"error: {message}", 2)', 'return _report(f"error: {message}", 1)', EXITS),
    Mutation("exit: interrupted", "cli/__init__.py", 'return _report("interrupted", 130)', 'return _report("interrupted", 2)', EXITS),
    Mutation("exit: closed pipe", "cli/__init__.py", "        return 128 + SIGPIPE\n", "        return 0\n", EXITS),
    Mutation("exit: of a command", "cli/__init__.py", "return code if isinstance(code, int) else 0", "return 0", EXITS),
    # Claims and intervals
    Mutation("claims: margin", "paper/relations.py", "MARGIN = 0.1 ", "MARGIN = 0.2 ", CLAIMS),
    Mutation("claims: close to the prior", "paper/claims.py", "_CLOSE = 1e-3", "_CLOSE = 1e-2", CLAIMS),
    Mutation("claims: almost perfect", "paper/claims.py", "ALMOST_PERFECT_MSE = 0.01 *", "ALMOST_PERFECT_MSE = 0.1 *", CLAIMS),
    Mutation("claims: not useful", "paper/claims.py", "NOT_USEFUL_MSE = 0.5 *", "NOT_USEFUL_MSE = 0.05 *", CLAIMS),
    Mutation("claims: joint confidence", "paper/claims.py", "adjusted_confidence(len(self.relations))", "adjusted_confidence(1)", CLAIMS),
    Mutation("claims: missing runs", "paper/claims.py", 'and not missing and set(outcomes) == {"held"}', 'and set(outcomes) == {"held"}', CLAIMS),
    Mutation("claims: equivalence", "paper/relations.py", "_by_side(-_side(below) * _side(above))", "_by_side(-_side(above))", CLAIMS),
    Mutation("claims: side of an interval", "paper/relations.py", "1 if interval.low > limit else", "1 if interval.value > limit else", CLAIMS),
    Mutation("claims: floor", "paper/relations.py", "< self.floor\n", "> self.floor\n", CLAIMS),
    Mutation("claims: controls", "paper/evidence.py", "self.controls.get((experiment, control)) or", "", CLAIMS),
    Mutation("intervals: three seeds", "experiments/intervals.py", "MINIMUM_SEEDS = 3", "MINIMUM_SEEDS = 2", CLAIMS),
    Mutation("intervals: Bonferroni", "experiments/intervals.py", "return 1 - 0.05 / max(1, statements)", "return 0.95", f"{INTERVALS} {CLAIMS}"),
    Mutation("intervals: Student", "experiments/intervals.py", "half = float(stdtrit(freedom,", "half = float(stdtrit(1e9,", INTERVALS),
    Mutation("intervals: two sides", "experiments/intervals.py", "half = float(stdtrit(freedom, 0.5 + confidence / 2))", "half = float(stdtrit(freedom, confidence))", INTERVALS),
    Mutation("intervals: equal values", "experiments/intervals.py", "if error else math.inf", "if error else 0.0", INTERVALS),
    # Fingerprints and rows
    Mutation("fingerprint: type", "data/fingerprint.py", '{array.dtype.str}{array.shape}', '{array.shape}', FINGERPRINT),
    Mutation("fingerprint: later blocks", "data/dataset.py", "for start in range(0, len(x), rows):\n        yield slice(start, min(start + rows, len(x)))", "for start in range(0, 1, rows):\n        yield slice(start, min(start + rows, len(x)))", FINGERPRINT),
    Mutation("fingerprint: kinds", "data/defaults.py", "fingerprint(x, *meaning)", "fingerprint(x)", FINGERPRINT),
    Mutation("rows: learned from", "runs/rows.py", "np.setdiff1d(np.arange(len(train)), held_out, assume_unique=True)", "np.arange(len(train))", ROWS),
    Mutation("rows: unseen are test rows", "runs/rows.py", 'split = "test" if test is not None else', 'split =', ROWS),
)  # fmt: skip


def main() -> int:
    """Print which mutations a test has noticed; 1 where one was not."""
    parser = argparse.ArgumentParser(prog="torture.mutations", description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only mutations with one of these words in their name")
    asked = parser.parse_args()
    chosen = [m for m in MUTATIONS if not asked.words or any(word in m.what for word in asked.words)]
    missed = 0
    for mutation in chosen:
        noticed = is_noticed(mutation)
        missed += not noticed
        print(f"{'noticed' if noticed else 'MISSED':8} {mutation.what}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} noticed")
    return 1 if missed else 0


def file_of(mutation: Mutation) -> Path:
    """The file under ``src/wiseale`` that holds the piece, exactly once: the named one, else the only one that does."""
    package = ROOT / "src" / "wiseale"
    named = package / mutation.file
    counts = {path: path.read_text(encoding="utf-8").count(mutation.old) for path in package.rglob("*.py")}
    holders = [named] if counts.get(named) else [path for path, count in counts.items() if count]
    if len(holders) != 1 or counts[holders[0]] != 1:
        places = ", ".join(f"{path.relative_to(package)} ({counts[path]} times)" for path in holders) or "no file"
        raise ValueError(f"{mutation.what}: {mutation.old!r} must be in one file, once, and is in {places}")
    return holders[0].relative_to(package)


def is_noticed(mutation: Mutation) -> bool:
    """Whether a test fails on the source without this protection."""
    with tempfile.TemporaryDirectory(prefix="wiseale-mutation-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "wiseale" / file_of(mutation)
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        # pyproject.toml puts src first on the path: the copy must take its place, in pytest and in what tests start.
        words = ("-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-o", f"pythonpath={source} .")
        environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, *mutation.tests.split()],
            cwd=ROOT,
            env=environment,
            capture_output=True,
        )
        return done.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
