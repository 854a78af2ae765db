import pytest

from kdoctor_watch.companion import Lows, resident_bytes


def test_lows_of_a_long_run_are_few_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("kdoctor_watch.companion.time.monotonic", lambda: now)
    lows = Lows("process", 5.0)
    for second in range(0, 10_000, 5):
        now = float(second)
        lows.add(1000 + second + (500 if second % 2 else 0))
    facts = lows.facts()
    assert facts.every_s == 640.0
    assert len(facts.lows) == 16
    assert facts.lows == tuple(1000 + 640 * place for place in range(16))


def test_period_without_reading_repeats_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("kdoctor_watch.companion.time.monotonic", lambda: now)
    lows = Lows("process", 1.0)
    lows.add(7)
    now = 3.5
    lows.add(9)
    assert lows.facts().lows == (7, 7, 7, 9)


def test_process_uses_memory() -> None:
    assert resident_bytes() > 1024**2
