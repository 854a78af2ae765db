"""Prints how many faults were survived, by kind."""

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    survived: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", ()):
        place, _, case = report.nodeid.partition("[")
        if place.startswith("tests/faults/") and report.when == "call":
            survived[case.partition(":")[0] if ":" in case else "other"] += 1
    if survived:
        total = ", ".join(f"{kind} {count}" for kind, count in sorted(survived.items()))
        terminalreporter.write_line(f"faults survived: {survived.total()} ({total})")
