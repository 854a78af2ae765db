"""Prints how many machines were tried."""

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tried = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        for name, value in report.user_properties
        if name == "machines tried"
    ]
    if tried:
        terminalreporter.write_line(f"machines tried: {sum(tried):,}, of {len(tried)} kinds")
