"""Set-up of the test process, and fixtures for all tests."""

from __future__ import annotations

import signal

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

pytest.register_assert_rewrite("helpers.comparison_checks")

# Processes that a shell starts in the background ignore SIGINT, and so do their children. Tests of interrupted runs
# need the default handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _Screen(SingleFileSnapshotExtension):
    """Store each screen as a text file, so that reviews show changes of wording."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that train come first: a long one at the end would leave the other processes without work."""
    training = {item.path for item in items if item.get_closest_marker("tensorflow")}
    items.sort(key=lambda item: item.path not in training)


@pytest.fixture
def screen(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The reviewed text of a whole screen: ``assert text == screen``. ``make snapshots`` rewrites the files."""
    return snapshot.use_extension(_Screen)
