"""One run of a comparison: its settings, its directory, and what is to be done next."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wiseale.config import TrainConfig
from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import to_json
from wiseale.runs.directory import RunDirectory

_COMMAND_MARK = "$ "


@dataclass(frozen=True)
class Job:
    """One run of a comparison: its name in tables, its settings, its directory, and how many rows to evaluate it on."""

    name: str
    config: TrainConfig
    out: Path
    evaluate_rows: int = 10_000

    @property
    def log(self) -> Path:
        """The file with the output of its processes, and their commands."""
        return self.out.with_name(f"{self.out.name}.log")

    @property
    def lock(self) -> Path:
        """The file that whoever works on the job has locked."""
        return self.out.with_name(f".{self.out.name}.lock")

    @property
    def last_log_line(self) -> str:
        """The last line that its processes printed."""
        if not self.log.exists():
            return "it has not begun"
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines and not lines[-1].startswith(_COMMAND_MARK) else "it ended without a word"

    def log_command(self, arguments: list[str]) -> None:
        """Note in the log that a command is started."""
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{_COMMAND_MARK}wiseale {' '.join(arguments)}\n")

    def log_bytes(self) -> int:
        """Length of the log; it grows when a command is started."""
        return self.log.stat().st_size if self.log.exists() else 0

    def epochs_done(self) -> int:
        """Epochs reported so far."""
        metrics = RunDirectory(self.out).metrics
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    @property
    def next_step(self) -> Literal["train", "resume", "evaluate", "done"]:
        """What is to be done next."""
        run = RunDirectory(self.out)
        if run.finished:
            return "done" if run.evaluation.exists() else "evaluate"
        return "resume" if run.config.exists() else "train"

    @property
    def done(self) -> bool:
        """Whether it is trained and evaluated."""
        return self.next_step == "done"

    def next_command(self) -> list[str] | None:
        """The next command: train, resume or evaluate; None where the job is done."""
        match self.next_step:
            case "done":
                return None
            case "evaluate":
                return ["evaluate", str(self.out), "--most", str(self.evaluate_rows), "--no-figures"]
            case "resume":
                return ["resume", str(self.out)]
        settings = self.out.with_name(f"{self.out.name}.json")
        settings.parent.mkdir(parents=True, exist_ok=True)
        config = dataclasses.replace(self.config, figures=False)  # the comparison draws its own
        given = {key: value for key, value in dataclasses.asdict(config).items() if value is not None}
        write_text(settings, to_json(given))
        return ["train", "--config", str(settings), "--out", str(self.out)]
