import datetime as dt
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import healthy
from kdoctor.output import OutputError
from kdoctor.probes.process.readers import Take
from kdoctor_fleet.exclusion import Engine as Words
from kdoctor_fleet.launch.collect import Answer, Collection, Limits
from kdoctor_fleet.launch.engine import Ended, InterruptedRunError
from kdoctor_fleet.node_report import MOST_BYTES

REPORT = json.dumps(healthy("n1"), indent=2).encode()
Run = Callable[[str, Take, float], Ended]
GOOD = Ended(exit_code=0, problem="")


class Stub:
    """An engine whose nodes are functions."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.interrupted = threading.Event()
        self.most = self.open = 0
        self._lock = threading.Lock()

    name = "stub"
    words: Words = "hosts"

    def nodes(self, environ: Mapping[str, str]) -> str:
        return ""

    def address(self, node: str) -> str:
        return node

    def run(self, node: str, command: Sequence[str], take: Take, deadline_s: float) -> Ended:
        with self._lock:
            self.open += 1
            self.most = max(self.most, self.open)
        try:
            return self._run(node, take, deadline_s)
        finally:
            with self._lock:
                self.open -= 1

    def interrupt(self) -> None:
        self.interrupted.set()

    def end(self) -> None:
        self.interrupted.set()


def collect(
    run: Run, *nodes: str, fan_out: int = 8, node_s: float = 5.0, total_s: float | None = None
) -> tuple[dict[str, Answer], dict[str, bytes], Stub]:
    kept: dict[str, bytes] = {}
    engine = Stub(run)
    collection = Collection(
        engine,
        lambda node, deadline_s: ["kdoctor", node],
        Limits(fan_out=fan_out, node_s=node_s, total_s=total_s),
        kept.__setitem__,
    )
    answers = {answer.node: answer for answer in collection.run(nodes or ("n1",)) if answer}
    return answers, kept, engine


def writing(content: bytes, end: Ended = GOOD) -> Run:
    def run(node: str, take: Take, deadline_s: float) -> Ended:
        for start in range(0, len(content), 65536):
            if not take(content[start : start + 65536]):
                return Ended(exit_code=None, problem="died of SIGKILL")
        return end

    return run


@pytest.mark.parametrize(
    "content", [REPORT, b"motd\n" + REPORT + b"\n}\nlogout\n", b'{"schema": "x"}\n' + REPORT, REPORT + b"\n" + REPORT]
)
@pytest.mark.parametrize("code", [0, 1, 3])
def test_report_is_kept_whatever_surrounds_it(content: bytes, code: int) -> None:
    answers, kept, _ = collect(writing(content, Ended(exit_code=code, problem="noise")))
    assert answers["n1"].verdict == "pass"
    assert json.loads(kept["n1"]) == json.loads(REPORT)


def test_report_may_have_been_asked_for_before_the_run() -> None:
    earlier = "2026-01-02T03:04:05Z"
    answers, _, _ = collect(writing(REPORT, Ended(exit_code=0, problem="", asked_at=earlier)))
    assert answers["n1"].asked_at == earlier
    before = dt.datetime.now(dt.timezone.utc) - dt.timedelta(minutes=1)
    answers, _, _ = collect(writing(REPORT))
    assert dt.datetime.fromisoformat(answers["n1"].asked_at) > before


@cases(
    (b"", GOOD, "it wrote no report"),
    (b"x" * 1000, GOOD, "its output is not a report"),
    (REPORT[:5000], GOOD, "truncated"),
    (REPORT[:5000], Ended(exit_code=137, problem="Killed"), "killed there (SIGKILL): Killed"),
    (REPORT[:5000], Ended(exit_code=139, problem=""), "killed there (SIGSEGV)"),
    (REPORT.replace(b"/v1", b"/v9", 1), GOOD, "newer"),
    (b"", Ended(exit_code=127, problem="sh: kdoctor: not found"), "cannot be started there: sh: kdoctor: not found"),
    (b"", Ended(exit_code=2, problem="kdoctor: no such check"), "exit code 2: kdoctor: no such check"),
    (b"", Ended(exit_code=None, problem="ssh: refused"), "ssh: refused"),
    (b"", Ended(exit_code=None, problem="", timed_out=True), "no report within 5 s"),
    (b"", Ended(exit_code=1, problem="\x1b[31mred\n\n" + "x" * 1000), "red"),
)
def test_node_without_a_report_is_silent_with_the_reason(content: bytes, end: Ended, reason: str) -> None:
    answers, kept, _ = collect(writing(content, end))
    assert not kept
    assert answers["n1"].verdict == ""
    assert reason in answers["n1"].reason
    assert len(answers["n1"].reason) <= 200
    assert answers["n1"].reason.isprintable()


@pytest.mark.parametrize("piece", [b"x", b'{"schema": "kdoctor/report/v1"\n', b"{\n", b"\0"])
def test_output_is_bounded(piece: bytes) -> None:
    started = time.process_time()
    answers, kept, _ = collect(writing(piece * (MOST_BYTES // len(piece) + 1)))
    assert not kept
    assert "more than 32 MiB" in answers["n1"].reason
    assert time.process_time() - started < 5


def test_many_beginnings_of_reports_are_read_in_linear_time() -> None:
    started = time.process_time()
    answers, _, _ = collect(writing(b'{"schema": "kdoctor/report/v1", "x": [\n' * 200_000))
    assert answers["n1"].reason
    assert time.process_time() - started < 5


def test_node_that_raises_does_not_stop_the_others() -> None:
    def run(node: str, take: Take, deadline_s: float) -> Ended:
        if node == "n2":
            raise ZeroDivisionError
        return writing(REPORT)(node, take, deadline_s)

    answers, kept, _ = collect(run, "n1", "n2", "n3")
    assert sorted(kept) == ["n1", "n3"]
    assert "ZeroDivisionError" in answers["n2"].reason


def test_report_that_cannot_be_kept_is_no_report() -> None:
    def keep(node: str, content: bytes) -> None:
        raise OutputError("cannot write n1.json: No space left on device")

    limits = Limits(fan_out=1, node_s=5, total_s=None)
    (answer,) = filter(None, Collection(Stub(writing(REPORT)), lambda *_: [], limits, keep).run(["n1"]))
    assert "No space left on device" in answer.reason


def test_so_many_nodes_are_asked_at_once() -> None:
    def run(node: str, take: Take, deadline_s: float) -> Ended:
        time.sleep(0.02)
        return GOOD

    answers, _, engine = collect(run, *(f"n{index}" for index in range(40)), fan_out=4)
    assert len(answers) == 40
    assert engine.most == 4


def test_whole_run_has_a_deadline() -> None:
    given: list[float] = []

    def run(node: str, take: Take, deadline_s: float) -> Ended:
        given.append(deadline_s)
        time.sleep(min(deadline_s, 0.3))
        return Ended(exit_code=None, problem="", timed_out=True)

    answers, _, _ = collect(run, "n1", "n2", "n3", fan_out=1, node_s=0.45, total_s=0.5)
    assert 0.4 < given[0] <= 0.45
    assert given[1] < 0.3
    assert "not started" in answers["n3"].reason


def test_closing_the_iterator_ends_what_runs() -> None:
    def run(node: str, take: Take, deadline_s: float) -> Ended:
        assert engine.interrupted.wait(5)
        raise InterruptedRunError

    engine = Stub(run)
    collection = Collection(engine, lambda *_: [], Limits(fan_out=2, node_s=60, total_s=None), lambda *_: None)
    started = time.monotonic()
    with closing(collection.run(["n1", "n2", "n3"])) as answers:
        assert next(answers) is None
        assert list(collection.running) == ["n1", "n2"]
    assert not collection.running
    assert time.monotonic() - started < 5
