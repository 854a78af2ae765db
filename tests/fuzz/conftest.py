"""Prints how many inputs were read and how many hostile strings were shown, by reader and by renderer."""

from collections import Counter

import pytest

TITLES = ("inputs read", "hostile strings shown")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for title in TITLES:
        found: Counter[str] = Counter()
        for report in terminalreporter.stats.get("passed", ()):
            if report.when == "call":
                found.update({str(name): int(count) for key, (name, count) in _pairs(report) if key == title})
        if found:
            by_name = ", ".join(f"{name} {count}" for name, count in sorted(found.items()))
            terminalreporter.write_line(f"{title}: {found.total()} ({by_name})")


def _pairs(report: pytest.TestReport) -> list[tuple[str, tuple[str, int]]]:
    return [(key, value) for key, value in report.user_properties if key in TITLES]  # type: ignore[misc]
