"""Prints the mutants that were killed, by package."""

from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    killed: list[Any] = [
        value
        for report in terminalreporter.stats.get("passed", ())
        for name, value in report.user_properties
        if name == "mutants killed"
    ]
    if killed:
        shown = ", ".join(f"{package} {count}" for package, count in killed)
        terminalreporter.write_line(f"mutants killed: {sum(count for _, count in killed)} ({shown})")
