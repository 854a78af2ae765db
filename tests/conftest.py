"""What every test takes for granted of the process that it runs in."""

from __future__ import annotations

import signal

import pytest

pytest.register_assert_rewrite("helpers.comparison_checks")

# A shell that starts the tests in the background has them ignore Ctrl-C, and every process that they start would
# ignore it, too: then no test of an interruption could tell anything.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
