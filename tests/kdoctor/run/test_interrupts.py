from __future__ import annotations

import signal

import pytest

from kdoctor.run.interrupts import delayed_interrupt


def test_first_interrupt_waits_for_the_end_of_the_block() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), delayed_interrupt():
        signal.raise_signal(signal.SIGINT)
        done = True
    assert done


def test_second_interrupt_ends_at_once() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), delayed_interrupt():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done = True
    assert not done
