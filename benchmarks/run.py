"""Speed as ratios: each command against a yardstick, in the same run. ``make bench``.

Machines differ, so that absolute times are not a target. A pair runs A B A B ... after one warm-up of each. The ratio
of the medians must not exceed the limit. Exit status 1 if one does.
"""

import argparse
import functools
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KDOCTOR = str(Path(sys.executable).with_name("kdoctor"))
SOURCES = os.pathsep.join(str(HERE.parent / name) for name in ("doctor", "checks", "checklists", "tests"))
"""Search path with the tests' helpers. Folders of tests have the names of packages, so they come last."""
SCRIPTS = Path(tempfile.gettempdir(), "kdoctor-bench-scripts")
"""Training scripts for the linter."""

PLAIN_TIER = (sys.executable, str(HERE / "plain_tier.py"))

MACHINES = Path(tempfile.gettempdir(), "kdoctor-bench-machines")
"""Descriptions of GPU machines."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A command, its yardstick, and the limit for the ratio of their times."""

    name: str
    ours: tuple[str, ...]
    yardstick: tuple[str, ...]
    limit: float
    rounds: int
    prepare: Callable[[], object] | None = None
    """Prepares the input of both; not timed."""
    may_find: bool = False
    """Whether our command may end with exit status 1, because what it examines has defects."""
    of_start: bool = False
    """Whether it measures the start of a command: ``make bench-start``."""
    of_processor: bool = False
    """Whether processor time is compared instead of elapsed time: of two programs that only compute."""


HISTORIES = Path(tempfile.gettempdir(), "kdoctor-bench-histories")
"""A history of 100,000 runs."""


def write_history() -> None:
    """Write a history of 100,000 runs."""
    seconds((sys.executable, str(HERE / "long_history.py"), str(HISTORIES / "long.sqlite")))


def write_scripts() -> None:
    """Write 200 training scripts of up to 2,000 lines."""
    seconds((sys.executable, str(HERE / "training_files.py"), str(SCRIPTS)))


TREE = Path(tempfile.gettempdir(), "kdoctor-bench-tree")
"""Training scripts with a million lines."""


def write_tree() -> None:
    """Write training scripts with a million lines, unless they are there."""
    if not TREE.exists():
        seconds((sys.executable, str(HERE / "training_files.py"), str(TREE), "--lines", "1000000"))


def write_machines() -> None:
    """Write machines with 8 and 16 GPUs and the stand-in for NVML."""
    seconds(("env", f"PYTHONPATH={SOURCES}", sys.executable, str(HERE / "gpu_machines.py"), str(MACHINES)))


def write_snapshot() -> None:
    """Record the facts of the machine with 16 GPUs."""
    write_machines()
    seconds((*on_machine(16, "")[:-2], KDOCTOR, "snapshot", "--no-smoke", "--output", str(MACHINES / "16.json")))


LOGS = Path(tempfile.gettempdir(), "kdoctor-bench-logs")
"""A kernel log and the log of a training, of 100 MB each."""


def write_log() -> None:
    """Write a kernel log of 100 MB."""
    seconds((sys.executable, str(HERE / "kernel_log.py"), "write", str(LOGS / "kernel.log")))


def write_job_log() -> None:
    """Write the log of a training of 100 MB."""
    seconds((sys.executable, str(HERE / "job_log.py"), str(LOGS / "job.log")))


def on_machine(gpus: int, script: str) -> tuple[str, ...]:
    """The command that runs a script of this folder on the machine with this number of GPUs."""
    machine = MACHINES / str(gpus)
    return (
        "env",
        f"LD_LIBRARY_PATH={MACHINES / 'library'}",
        f"KDOCTOR_NVML_MACHINE={machine / 'machine'}",
        f"KDOCTOR_ROOT={machine / 'root'}",
        sys.executable,
        str(HERE / script),
    )


MOST_KB_A_NODE = 20.0
_SMALL = 1000
"""Number of nodes that are compared with all of the fleet."""
FLEET = Path(tempfile.gettempdir(), "kdoctor-bench-fleet")
"""The reports of 10,000 nodes: 1.4 GB."""


def write_fleet() -> None:
    """Write the reports of 10,000 nodes."""
    seconds(("env", f"PYTHONPATH={SOURCES}", sys.executable, str(HERE / "fleet_reports.py"), "write", str(FLEET)))


READING = (
    ("checklist", "validate", "cpu-smoke"),
    ("checklist", "diff", "cpu-smoke", "multi-gpu-keras"),
    ("list",),
    ("explain", "gpu.free"),
    ("matrix",),
    ("matrix", "--driver", "535.161.08", "--gpu", "A100", "--python", "3.11"),
)
"""Commands that read files and print."""
STARTING = READING[0], READING[3], READING[4]

PAIRS = (
    Pair(
        name="kdoctor --help / --help of a typer program with two empty commands",
        ours=(KDOCTOR, "--help"),
        yardstick=(sys.executable, str(HERE / "two_commands.py"), "--help"),
        limit=1.5,
        rounds=15,
        of_start=True,
    ),
    Pair(
        name="kdoctor --version / --help of that program",
        ours=(KDOCTOR, "--version"),
        yardstick=(sys.executable, str(HERE / "two_commands.py"), "--help"),
        limit=1.5,
        rounds=15,
        of_start=True,
    ),
    *(
        Pair(
            name=f"kdoctor {' '.join(command)} / kdoctor --help",
            ours=(KDOCTOR, *command),
            yardstick=(KDOCTOR, "--help"),
            limit=3.0,
            rounds=15,
            of_start=command in STARTING,
        )
        for command in READING
    ),
    Pair(
        name="check --no-smoke / import tensorflow",
        ours=(KDOCTOR, "check", "--no-smoke", "--checklist", "cpu-smoke"),
        yardstick=(sys.executable, "-c", "import tensorflow"),
        limit=0.25,
        rounds=5,
        of_start=True,
    ),
    Pair(
        name="check --no-smoke --select versions / import tensorflow",
        ours=(KDOCTOR, "check", "--no-smoke", "--select", "versions", "--checklist", "cpu-smoke"),
        yardstick=(sys.executable, "-c", "import tensorflow"),
        limit=0.3,
        rounds=5,
    ),
    Pair(
        name="check --checklist cpu-smoke / the same trainings in one plain script",
        ours=(KDOCTOR, "check", "--checklist", "cpu-smoke"),
        yardstick=(sys.executable, str(HERE / "plain_trainings.py")),
        limit=1.15,
        rounds=3,
    ),
    *(
        Pair(
            name=f"smoke --tier {tier} / the same trainings in one plain script",
            ours=(KDOCTOR, "smoke", "--tier", tier, "--replicas", "2"),
            yardstick=("sh", "-ec", "; ".join(shlex.join((*PLAIN_TIER, tier, each)) for each in frameworks)),
            limit=1.0,
            rounds=rounds,
            may_find=True,
        )
        for tier, frameworks, rounds in (("quick", ("tensorflow",), 3), ("standard", ("tensorflow", "jax"), 1))
    ),
    Pair(
        name="lint of 200 training scripts of up to 2,000 lines / ast.parse of them",
        ours=(KDOCTOR, "lint", "--no-cache", str(SCRIPTS)),
        yardstick=(sys.executable, str(HERE / "parse_files.py"), str(SCRIPTS)),
        limit=3.0,
        rounds=5,
        prepare=write_scripts,
        may_find=True,
    ),
    # It fails if memory grows with the number of files.
    Pair(
        name="lint of a million lines in 2 processes / in 1",
        ours=(sys.executable, str(HERE / "lint_processes.py"), str(TREE), "2"),
        yardstick=(sys.executable, str(HERE / "lint_processes.py"), str(TREE), "1"),
        limit=0.75,
        rounds=1,
        prepare=write_tree,
    ),
    Pair(
        name="history of 100,000 runs, all of them listed / kdoctor --help",
        ours=("env", f"KDOCTOR_HISTORY={HISTORIES / 'long.sqlite'}", KDOCTOR, "history", "--last", "0"),
        yardstick=(KDOCTOR, "--help"),
        limit=4.0,
        rounds=9,
        prepare=write_history,
    ),
    Pair(
        name="collection from 8 GPUs / a pynvml script with the same calls in sequence",
        ours=on_machine(8, "collect_machine.py"),
        yardstick=on_machine(8, "nvml_in_sequence.py"),
        limit=1.5,
        rounds=7,
        prepare=write_machines,
    ),
    Pair(
        name="collection from 16 GPUs / from 8 GPUs",
        ours=on_machine(16, "collect_machine.py"),
        yardstick=on_machine(8, "collect_machine.py"),
        limit=2.2,
        rounds=7,
        prepare=write_machines,
    ),
    Pair(
        name="the quick tier while 8 GPUs are sampled / alone",
        ours=(*on_machine(8, "quick_tier.py"), "sampled"),
        yardstick=(*on_machine(8, "quick_tier.py"), "alone"),
        limit=1.1,
        rounds=3,
        prepare=write_machines,
    ),
    # Loading takes a third of a second with all imports. Judging may take 50 ms more.
    Pair(
        name="judging a snapshot of 16 GPUs / loading it",
        ours=(sys.executable, str(HERE / "judge_snapshot.py"), str(MACHINES / "16.json"), "judge"),
        yardstick=(sys.executable, str(HERE / "judge_snapshot.py"), str(MACHINES / "16.json"), "load"),
        limit=1.2,
        rounds=7,
        prepare=write_snapshot,
    ),
    Pair(
        name="import of a kernel log of 100 MB / grep NVRM with re",
        ours=(sys.executable, str(HERE / "kernel_log.py"), "import", str(LOGS / "kernel.log")),
        yardstick=(sys.executable, str(HERE / "grep_log.py"), str(LOGS / "kernel.log")),
        limit=1.5,
        rounds=5,
        of_processor=True,
        prepare=write_log,
    ),
    Pair(
        name="diagnose of a training log of 100 MB / reading it line by line with one compiled expression",
        ours=(KDOCTOR, "diagnose", str(LOGS / "job.log")),
        yardstick=(sys.executable, str(HERE / "grep_errors.py"), str(LOGS / "job.log")),
        limit=2.0,
        rounds=5,
        of_processor=True,
        prepare=write_job_log,
    ),
    Pair(
        name="merge of the reports of 10,000 nodes / parsing their JSON",
        ours=(sys.executable, str(HERE / "fleet_reports.py"), "merge", str(FLEET)),
        yardstick=(sys.executable, str(HERE / "fleet_reports.py"), "parse", str(FLEET)),
        limit=5.0,
        rounds=1,
        of_processor=True,
        prepare=write_fleet,
    ),
)


def seconds(command: Sequence[str], *, of_processor: bool = False, may_find: bool = False) -> float:
    """Elapsed time of one run, or its processor time, in seconds.

    Raises:
        SystemExit: the command failed, so that its time is meaningless.
    """
    # Bytecode is cached, as in an installation, even where the developer's environment turns that off.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ = {**kept, "TF_CPP_MIN_LOG_LEVEL": "3", "KDOCTOR_NO_HISTORY": "1"}
    clock = _processor_seconds if of_processor else time.perf_counter
    started = clock()
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    elapsed = clock() - started
    if done.returncode not in ((0, 1) if may_find else (0,)):
        raise SystemExit(f"{' '.join(command)}\nexited with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return elapsed


def _processor_seconds() -> float:
    """Processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(pair: Pair, most_rounds: int = 15) -> float:
    """Run a pair, print the ratio of the medians, and return it."""
    if pair.prepare is not None:
        pair.prepare()
    measured = functools.partial(seconds, of_processor=pair.of_processor)
    ours_of = functools.partial(measured, pair.ours, may_find=pair.may_find)
    ours_of()
    measured(pair.yardstick)
    rounds = [(ours_of(), measured(pair.yardstick)) for _ in range(min(pair.rounds, most_rounds))]
    ours, yardstick = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio: float = ours / yardstick
    mark = "ok  " if ratio <= pair.limit else "OVER"
    print(
        f"{mark} {ratio:5.2f} (at most {pair.limit:.2f})  {ours:7.3f} s / {yardstick:7.3f} s  {pair.name}", flush=True
    )
    return ratio


def memory_of_fleet() -> float:
    """Print and return by how many kB the memory of a merge grows with each node, from 1,000 to 10,000 nodes."""
    write_fleet()
    small = FLEET.with_name(f"{FLEET.name}-small")
    small.mkdir(exist_ok=True)
    for file in sorted(FLEET.iterdir())[:_SMALL]:
        (small / file.name).unlink(missing_ok=True)
        (small / file.name).hardlink_to(file)
    peaks = []
    for folder in (small, FLEET):
        command = (sys.executable, str(HERE / "fleet_reports.py"), "merge", str(folder))
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)}\nexited with status {process.returncode}")
        peaks.append(usage.ru_maxrss)
    grown = 1.024 * (peaks[1] - peaks[0]) / (len(list(FLEET.iterdir())) - _SMALL)
    mark = "ok  " if grown <= MOST_KB_A_NODE else "OVER"
    print(f"{mark} {grown:5.2f} kB (at most {MOST_KB_A_NODE:.2f})  memory of a merge for each node", flush=True)
    return grown


def main() -> None:
    """Run the pairs whose name contains the given word, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only pairs with this in their name")
    parser.add_argument(
        "--start", action="store_true", help="only the start of commands, briefly; always exit status 0"
    )
    options = parser.parse_args()
    if options.start:
        for pair in PAIRS:
            if pair.of_start:
                compare(pair, most_rounds=max(1, pair.rounds // 7))
        return
    word = options.word
    over = [pair.name for pair in PAIRS if word in pair.name and compare(pair) > pair.limit]
    if word in "memory of a merge for each node" and memory_of_fleet() > MOST_KB_A_NODE:
        over.append("memory")
    raise SystemExit(1 if over else 0)


if __name__ == "__main__":
    main()
