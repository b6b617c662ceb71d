"""Comparisons on a Dask cluster and in a job array; one process at a time in a directory."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from tests.cli.commands import run

from wiseale.cli.options import ArrayTask
from wiseale.config import TrainConfig
from wiseale.errors import ConfigError
from wiseale.experiments import jobs as job_module
from wiseale.experiments.jobs import Caller, Job, do_job, run_jobs
from wiseale.platform.locks import reserved
from wiseale.processes.engines import local_engine, open_engine
from wiseale.runs.directory import RunDirectory

TINY = [
    *("sine:n=150,n_test=80", "--objectives", "aevb", "--seeds", "2", "--network", "mlp:hidden=8"),
    *("--max-epochs", "40", "--batch-size", "16", "--evaluate-rows", "80", "--checkpoint-every", "40"),
]


HOLD = """if True:
    import sys, time
    from pathlib import Path
    from wiseale.platform.locks import exclusive_lock
    with exclusive_lock(Path(sys.argv[1]), wait=False):
        print("held", flush=True)
        time.sleep(0.7)
"""


def job(out: Path) -> Job:
    return Job(out.name, TrainConfig(data="sine"), out)


@pytest.fixture
def commands(monkeypatch):
    """Commands that write a job's files in place of training; the job and the first argument of each are kept."""
    calls = []

    def pretend(job, arguments, stop, caller):
        calls.append((job.name, arguments[0]))
        RunDirectory(job.out).model.mkdir(parents=True, exist_ok=True)
        if arguments[0] == "evaluate":
            RunDirectory(job.out).evaluation.write_text("{}")
        return 0

    monkeypatch.setattr(job_module, "_run", pretend)
    return calls


def test_each_job_is_done_once_and_what_is_missing_by_the_next_call(tmp_path, commands):
    jobs = [job(tmp_path / f"run-{number}") for number in range(6)]
    states = []
    with local_engine(2) as engine:
        assert run_jobs(jobs[:4], engine, lambda jobs: None) == []
    with local_engine(2) as engine:
        assert run_jobs(jobs, engine, lambda jobs: states.append([state for _, state in jobs])) == []
    assert sorted(commands) == sorted((one.name, step) for one in jobs for step in ("train", "evaluate"))
    assert states[-1] == ["done"] * 6


def test_the_tasks_of_an_array_do_every_job_once(tmp_path, capsys, commands):
    out = tmp_path / "c"
    for task, runs in (("1/2", 2), ("2/2", 1), ("1/2", 2)):
        code, printed, _ = run(capsys, "compare", *TINY, "--seeds", 3, "--out", out, "--job", task)
        assert (code, f"{runs} of {runs} runs done" in printed) == (0, True)
    assert sorted(commands) == sorted(
        (f"aevb, seed {seed}", step) for seed in range(3) for step in ("train", "evaluate")
    )
    assert not (out / "report.html").exists()


def test_a_run_that_somebody_resumes_by_hand_is_left_to_them(tmp_path, commands, monkeypatch):
    monkeypatch.setattr(job_module, "_SAVING_SECONDS", 0.3)
    (tmp_path / "run").mkdir()
    with RunDirectory(tmp_path / "run").locked():
        ending = do_job(job(tmp_path / "run"), threading.Event(), Caller({}, tmp_path))
    assert (ending.state, commands) == ("failed", [])
    assert "in use by another process" in ending.reason


def test_a_run_whose_process_is_still_saving_is_waited_for(tmp_path, commands):
    (tmp_path / "run").mkdir()
    held = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    with held:
        assert held.stdout.readline() == "held\n"
        assert do_job(job(tmp_path / "run"), threading.Event(), Caller({}, tmp_path)).state == "done"


def test_a_second_process_is_refused(tmp_path, capsys, commands):
    out = tmp_path / "c"
    assert run(capsys, "compare", *TINY, "--out", out, "--job", "1")[0] == 0
    with reserved(out):
        code, _, error = run(capsys, "compare", *TINY, "--out", out)
        assert (code, f"{out} is in use by another process" in error) == (2, True)
        assert run(capsys, "compare", *TINY, "--out", out, "--job", "2")[0] == 0  # tasks of an array are many


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
def test_parts_of_an_array_cover_the_work_once(count):
    parts = [ArrayTask(number, count).part(range(7), "runs") for number in range(1, count + 1)]
    assert sorted(one for part in parts for one in part) == list(range(7))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    if count == 7:
        assert [ArrayTask(number).part(range(7), "runs") for number in range(1, 8)] == parts
    with pytest.raises(ConfigError, match="7 runs"):
        ArrayTask(8).part(range(7), "runs")


@pytest.mark.parametrize("task", ["0", "3/2", "-1", "1/0", "x", "1/2/3"])
def test_a_wrong_task_is_refused(tmp_path, capsys, task):
    code, _, error = run(capsys, "compare", *TINY, "--out", tmp_path / "c", f"--job={task}")
    assert (code, "--job" in error, task in error) == (2, True, True)


def test_a_worker_that_does_not_see_the_files_says_so(tmp_path):
    ending = do_job(job(tmp_path / "elsewhere" / "run"), threading.Event(), Caller({}, tmp_path))
    assert ending.state == "failed"
    assert "must be on a file system that all workers share" in ending.reason


@pytest.mark.long
def test_commands_end_with_the_process_that_started_them(tmp_path):
    """A killed worker's run saves and ends, so that another can resume it at once."""
    code = f"""if True:
        import threading
        from pathlib import Path
        from wiseale.config import TrainConfig
        from wiseale.experiments.jobs import Caller, Job, do_job
        config = TrainConfig(data="sine:n=150,n_test=80", network="mlp:hidden=8", max_epochs=1000000, threads=1)
        do_job(Job("run", config, Path({str(tmp_path)!r}) / "run"), threading.Event(), Caller({{}}, Path.cwd()))
    """
    worker = subprocess.Popen([sys.executable, "-c", code])
    try:
        run_job = Job("run", TrainConfig(data="sine"), tmp_path / "run")
        while not run_job.epochs_done():
            assert worker.poll() is None
            time.sleep(0.05)
        (command,) = psutil.Process(worker.pid).children()
    finally:
        worker.kill()
        worker.wait()
    command.wait(60)
    assert "interrupted" in run_job.last_log_line
    assert any(RunDirectory(run_job.out).checkpoints.iterdir())


@pytest.mark.parametrize("cluster", ["local:0", "local:x"])
def test_a_wrong_cluster_is_refused(tmp_path, capsys, cluster):
    code, _, error = run(capsys, "compare", *TINY, "--cluster", cluster, "--out", tmp_path / "c")
    assert (code, "--cluster must be local:N" in error) == (2, True)


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr("wiseale.processes.engines._CONNECT_SECONDS", 1)
    with pytest.raises(Exception, match=r"no Dask scheduler answers at 127\.0\.0\.1:9"), open_engine("127.0.0.1:9", 1):
        pass


def test_the_slurm_script_does_every_job_once(tmp_path, capsys, monkeypatch):
    arguments = ["compare", *TINY, "--threads", "2", "--out", str(tmp_path / "a b"), "--print-jobs"]
    monkeypatch.setattr(sys, "argv", ["wiseale", *arguments])
    code, printed, _ = run(capsys, *arguments)
    assert code == 0
    assert "#SBATCH --array=1-2\n" in printed
    assert "#SBATCH --cpus-per-task=2\n" in printed
    command = printed.splitlines()[-1]
    assert command.startswith("srun wiseale compare sine:n=150,n_test=80 --objectives aevb ")
    assert command.endswith(f"--out '{tmp_path}/a b' --job \"$SLURM_ARRAY_TASK_ID\"")
    assert not (tmp_path / "a b").exists()
    assert subprocess.run(["bash", "-n"], input=printed, text=True, check=False).returncode == 0


@pytest.mark.parametrize(("config", "cores"), [("threads = 2\n", 2), ("lr = 0.001\n", 1)])
def test_threads_may_come_from_a_file(tmp_path, capsys, monkeypatch, config, cores):
    (tmp_path / "c.toml").write_text(config)
    arguments = ["compare", *TINY, "--config", str(tmp_path / "c.toml"), "--out", str(tmp_path / "a"), "--print-jobs"]
    monkeypatch.setattr(sys, "argv", ["wiseale", *arguments])
    code, printed, _ = run(capsys, *arguments)
    assert (code, f"--cpus-per-task={cores}\n" in printed) == (0, True)


def test_a_job_number_beyond_the_last_is_refused(tmp_path, capsys):
    code, _, error = run(capsys, "compare", *TINY, "--out", tmp_path / "c", "--job", "3")
    assert (code, "there are 2 runs" in error) == (2, True)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="kills a process")
def test_a_killed_worker_changes_nothing(tmp_path):
    """A run whose worker is killed while it trains, resumed by another worker, and the same run undisturbed."""
    settings = {"network": "mlp:hidden=8", "max_epochs": 40, "batch_size": 16, "threads": 1, "checkpoint_every": 40}
    config = TrainConfig(data="sine:n=150,n_test=80", objective="aevb", **settings)
    there, here = (Job(name, config, tmp_path / name / "run", 80) for name in ("there", "here"))
    killed = []

    def kill_while_training(shown):
        if not killed and there.epochs_done():
            (worker,) = [one for one in psutil.Process().children(recursive=True) if _runs(one, "there")]
            killed.append(worker.pid)
            os.kill(worker.pid, signal.SIGKILL)

    with open_engine("local:2", 1) as engine:
        assert run_jobs([there], engine, kill_while_training) == []
    assert len(killed) == 1
    assert re.findall(r"^\$ wiseale (\w+)", there.log.read_text(), re.MULTILINE) == ["train", "resume", "evaluate"]
    here.out.parent.mkdir()
    assert do_job(here, threading.Event(), Caller({}, tmp_path)).state == "done"
    for name in ("metrics.jsonl", "model/model.safetensors", "evaluation.json"):
        assert (there.out / name).read_bytes() == (here.out / name).read_bytes(), name


def _runs(process: psutil.Process, name: str) -> bool:
    """Whether a process is the parent of the command that works on the job of this name."""
    return any(f"/{name}/run.json" in " ".join(child.cmdline()) for child in process.children())
