"""What every test takes for granted of the process that it runs in."""

from __future__ import annotations

import signal

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

pytest.register_assert_rewrite("helpers.comparison_checks")

# A shell that starts the tests in the background has them ignore Ctrl-C, and every process that they start would
# ignore it, too: then no test of an interruption could tell anything.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _Screen(SingleFileSnapshotExtension):
    """One text file for each screen, so that a change of wording is read in review."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.fixture
def screen(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """A whole screen as a reviewed file: ``assert text == screen``. ``make snapshots`` rewrites them."""
    return snapshot.use_extension(_Screen)
