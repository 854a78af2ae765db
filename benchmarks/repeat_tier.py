"""Trains a tier again and again on a busy machine, and compares the results: ``python repeat_tier.py quick 20``.

Exit status 1 if a check has two different results.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KDOCTOR = str(Path(sys.executable).with_name("kdoctor"))


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep this number of processes computing."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def train(tier: str) -> dict[str, str]:
    """One run: the exit status, and the status of each check with the subjects that it is about.

    Raises:
        SystemExit: the run has no report.
    """
    command = [KDOCTOR, "smoke", "--tier", tier, "--replicas", "2", "--format", "json"]
    environ = {**os.environ, "KDOCTOR_NO_HISTORY": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    if done.returncode not in (0, 1, 3):
        raise SystemExit(f"exit status {done.returncode}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    found = {result["id"]: _describe(result) for result in report["results"]}
    return {"exit status": str(done.returncode), **found}


def _describe(result: dict[str, Any]) -> str:
    subjects = [item["subject"] for item in result["findings"]]
    reasons = [f"{item['subject']}: {item['reason']}" for item in result["unjudged"]]
    return ", ".join([result["status"], *sorted(subjects), *sorted(reasons)])


def main() -> None:
    """Run the tier, and print each result that is not always the same."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tier", choices=("quick", "standard", "full"))
    parser.add_argument("times", nargs="?", type=int, default=20)
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="processes that compute meanwhile")
    options = parser.parse_args()
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    with busy(options.busy):
        for number in range(1, options.times + 1):
            started = time.monotonic()
            found = train(options.tier)
            for name, result in found.items():
                seen[name][result] += 1
            took, load = time.monotonic() - started, os.getloadavg()[0]
            print(f"run {number}: exit status {found['exit status']}, {took:.0f} s, load {load:.1f}", flush=True)
    differ = {name: results for name, results in seen.items() if len(results) > 1 or results.total() < options.times}
    for name, results in differ.items():
        print(name, dict(results))
    print(f"{options.tier}: {options.times} runs, {len(seen) - 1} checks, {len(differ)} with different results")
    raise SystemExit(1 if differ else 0)


if __name__ == "__main__":
    main()
