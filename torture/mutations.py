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
    """A piece of a source file under ``src/wiseale``, what to put in its place, and the tests that must fail."""

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
    Mutation("writers: user's README", "models/model_file.py", "return CARD_MARK in read_text(path).splitlines()[:2]", "return True", STRANGE),
    Mutation("writers: readable weights", "models/tensor_files.py", "path.chmod(0o666 & ~_umask())", "pass", STRANGE),
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


def is_noticed(mutation: Mutation) -> bool:
    """Whether a test fails on the source without this protection."""
    with tempfile.TemporaryDirectory(prefix="wiseale-mutation-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "wiseale" / mutation.file
        text = path.read_text(encoding="utf-8")
        if mutation.old not in text:
            raise SystemExit(f"{mutation.what}: {mutation.file} has changed; it lacks {mutation.old!r}")
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
