import signal

from kdoctor.run.interrupts import delayed_interrupt


def steps_until_the_end(interrupts: int) -> list[str]:
    """What a delayed block did until KeyboardInterrupt came."""
    steps: list[str] = []
    try:
        with delayed_interrupt():
            for _ in range(interrupts):
                signal.raise_signal(signal.SIGINT)
                steps.append("interrupted")
            steps.append("done")
    except KeyboardInterrupt:
        return steps
    return ["no KeyboardInterrupt"]


def test_first_interrupt_waits_for_the_end_of_the_block() -> None:
    assert steps_until_the_end(interrupts=1) == ["interrupted", "done"]


def test_second_interrupt_ends_at_once() -> None:
    assert steps_until_the_end(interrupts=2) == ["interrupted"]
