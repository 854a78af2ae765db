"""Writes a history of 100,000 runs, one every eight minutes. Every 97th run failed."""

import datetime as dt
import sys
from pathlib import Path

from kdoctor.history.store import opened, pack, writing

RUNS = 100_000
_FAILED_EVERY = 97


def main() -> None:
    """Write the database, unless it exists."""
    place = Path(sys.argv[1])
    if place.exists():
        return
    report = pack('{"results": []}')
    start = dt.datetime(2029, 1, 1, tzinfo=dt.timezone.utc)
    with opened(place, create=True) as connection, writing(connection):
        for number in range(1, RUNS + 1):
            failed = number % _FAILED_EVERY == 0
            started = (start + dt.timedelta(minutes=8 * number)).isoformat(timespec="seconds")
            verdict = ("fail", 1, "gpu.free failed", 40, 1) if failed else ("pass", 0, "all passed", 41, 0)
            before = "fail" if number % _FAILED_EVERY == 1 else "pass"
            connection.execute(
                "INSERT INTO runs VALUES (?, ?, 34.2, 'node7', 'multi-gpu-keras', 1, '/opt/job/bin/python', '', "
                "'0.1.0', ?, ?, ?, ?, ?, 3, 0, ?)",
                (number, started, *verdict, before),
            )
            connection.execute("INSERT INTO reports VALUES (?, ?)", (number, report))
            connection.execute("INSERT INTO measures VALUES (?, 'smoke.baseline/mirrored step_s', 0.004)", (number,))
            if failed:
                connection.execute("INSERT INTO changes VALUES (?, 'gpu.free', 'pass', 'fail')", (number,))


if __name__ == "__main__":
    main()
