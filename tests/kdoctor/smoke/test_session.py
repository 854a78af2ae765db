"""Scenarios without TensorFlow: every outcome of a case is recorded, and no process is left."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import smoke
from helpers.cases import cases
from helpers.marked import left_of
from kdoctor.facts import SmokeRun, Unavailable
from kdoctor.probes.process.child import ChildrenEnded
from kdoctor.smoke.session import SmokeEvent, SmokeSettings

ISOLATIONS = pytest.mark.parametrize("isolation", ["fork", "fresh"])


@ISOLATIONS
def test_finished_case_has_its_facts(tmp_path: Path, isolation: str) -> None:
    fake = smoke.scenario(
        tmp_path,
        good="""
        case.phase("train")
        case.note(replicas=case.replicas, losses=[1.0, float("nan")], devices=["CPU:0", "CPU:1"], unheard_of=1)
        case.note(weights={"variables": 2, "mirrored": 2, "nonfinite": ["w"], "replicas_agree": True})
        """,
    )
    case = smoke.only_case(fake, isolation=isolation)
    assert (case.outcome, case.phase, case.replicas, case.losses) == ("trained", "train", 2, (1.0, None))
    assert case.weights is not None
    assert case.weights.nonfinite == ("w",)
    assert case.peak_memory_bytes is not None
    assert case.peak_memory_bytes > 2**20
    assert case.stacks is None
    assert case.stderr_tail is None


@ISOLATIONS
def test_exception_has_type_and_message(tmp_path: Path, isolation: str) -> None:
    case = smoke.only_case(smoke.scenario(tmp_path, bad="raise ValueError('two\\nlines')"), isolation=isolation)
    assert (case.outcome, case.error_type, case.error_message) == ("raised", "ValueError", "two\nlines")
    assert "in bad" in (case.stderr_tail or "")


@ISOLATIONS
def test_segfault_has_signal_and_stacks(tmp_path: Path, isolation: str) -> None:
    fake = smoke.scenario(tmp_path, crash="import ctypes\ncase.phase('train')\nctypes.string_at(0)")
    case = smoke.only_case(fake, isolation=isolation)
    assert (case.outcome, case.signal, case.exit_code, case.phase) == ("died", "SIGSEGV", None, "train")
    assert "in crash" in (case.stacks or "")


@cases(
    "import time\ntime.sleep(60)",
    "import ctypes\nctypes.PyDLL(None).sleep(60)",  # holds the GIL
    ids=["python", "c"],
)
@ISOLATIONS
def test_hang_ends_at_the_deadline_with_stacks(tmp_path: Path, isolation: str, body: str) -> None:
    started = time.monotonic()
    fake = smoke.scenario(tmp_path, hang=body, deadline_s=2.0)
    case = smoke.only_case(fake, isolation=isolation, import_deadline_s=60.0)
    assert case.outcome == "timed-out"
    assert case.signal is None
    assert "in hang" in (case.stacks or "")
    assert time.monotonic() - started < 15


def test_killed_case_died(tmp_path: Path) -> None:
    case = smoke.only_case(smoke.scenario(tmp_path, killed="import os\nos.kill(os.getpid(), 9)"))
    assert (case.outcome, case.signal) == ("died", "SIGKILL")


@pytest.mark.parametrize("phase", ["", "train"])
def test_killed_runner_has_its_signal_and_the_phase_of_its_case(tmp_path: Path, phase: str) -> None:
    end = "import os, time\ntime.sleep(1)\nos.kill(os.getppid(), 9)\ntime.sleep(5)"
    body = f"case.phase({phase!r})\n{end}" if phase else end
    fake = smoke.scenario(tmp_path, done="pass", kills=body)
    run = smoke.run(fake, parallel=1)
    assert run.signal == "SIGKILL"
    assert f"died of SIGKILL during {fake.id} kills{phase and ' '}{phase}" in (run.failure or "")
    assert "done" not in (run.failure or "")


def test_early_exit_has_its_status(tmp_path: Path) -> None:
    case = smoke.only_case(smoke.scenario(tmp_path, leave="import os\nos.write(2, b'farewell')\nos._exit(7)"))
    assert (case.outcome, case.exit_code, case.stderr_tail) == ("died", 7, "farewell")


def test_output_of_native_code_does_not_corrupt_the_records(tmp_path: Path) -> None:
    fake = smoke.scenario(tmp_path, noisy='import os\nos.write(1, b\'\\x1e{"event": "ended"}\\n\' * 1000)')
    assert smoke.only_case(fake).outcome == "trained"


def test_crash_does_not_affect_other_cases(tmp_path: Path) -> None:
    abort = "import os\nos.abort()"
    run = smoke.run(smoke.scenario(tmp_path, first=abort, good="case.note(gpus_seen=2)", last=abort), parallel=1)
    assert [case.outcome for case in run.cases] == ["died", "trained", "died"]
    assert run.gpus_seen == 2


def test_invalid_facts_fail_their_case(tmp_path: Path) -> None:
    case = smoke.only_case(smoke.scenario(tmp_path, odd="case.note(weights={'variables': 'many'})"))
    assert (case.outcome, case.error_type) == ("raised", "RecordError")
    assert "variables" in (case.error_message or "")


@cases(("import no_such_module_at_all", "ModuleNotFoundError"), ("CASES = 3", "LookupError"), ("(", "SyntaxError"))
def test_program_that_cannot_be_loaded_fails_each_case(tmp_path: Path, text: str, error: str) -> None:
    fake = smoke.scenario(tmp_path, one="pass", two="pass")
    fake.program.write_text(text, encoding="utf-8")
    cases = smoke.run(fake).cases
    assert [(case.name, case.error_type, case.phase) for case in cases] == [
        ("one", error, "import"),
        ("two", error, "import"),
    ]


def test_only_cpu_runs_hide_the_gpus(tmp_path: Path) -> None:
    fake = smoke.scenario(tmp_path, tell="import os\ncase.note(optimizer=os.environ['CUDA_VISIBLE_DEVICES'])")
    where = smoke.context(CUDA_VISIBLE_DEVICES="1")
    assert smoke.only_case(fake, where).optimizer == "-1"
    assert smoke.only_case(fake, smoke.context(CUDA_VISIBLE_DEVICES="1"), devices_kind="gpu").optimizer == "1"


def test_failing_import_is_the_failure_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "broken_module.py").write_text("raise ImportError('libcudart.so.12: cannot open')", encoding="utf-8")
    fake = smoke.scenario(tmp_path, never="pass")
    result = smoke.run(fake, smoke.context(PYTHONPATH=str(tmp_path)), preload=("broken_module",))
    assert result.failure == "ImportError: libcudart.so.12: cannot open"
    assert result.cases == ()
    assert "broken_module.py" in (result.stderr_tail or "")


def test_hanging_import_is_the_failure_of_the_run_with_stacks(tmp_path: Path) -> None:
    (tmp_path / "slow_module.py").write_text("import ctypes\nctypes.PyDLL(None).sleep(60)", encoding="utf-8")
    fake = smoke.scenario(tmp_path, never="pass")
    where = smoke.context(PYTHONPATH=str(tmp_path))
    result = smoke.run(fake, where, preload=("slow_module",), import_deadline_s=1.0)
    assert all(part in (result.failure or "") for part in ("slow_module", "1 s"))
    assert "slow_module.py" in (result.stacks or "")


def test_crashing_import_is_the_failure_of_the_run_with_stacks(tmp_path: Path) -> None:
    (tmp_path / "crash_module.py").write_text("import ctypes\nctypes.string_at(0)", encoding="utf-8")
    fake = smoke.scenario(tmp_path, never="pass")
    result = smoke.run(fake, smoke.context(PYTHONPATH=str(tmp_path)), preload=("crash_module",))
    assert "SIGSEGV" in (result.failure or "")
    assert "crash_module.py" in (result.stacks or "")


def test_every_case_of_every_scenario_may_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake, where, given = smoke.scenario(tmp_path, "one", "other", deadline_s=20.0), smoke.context(), list[float]()

    def run(*_: object, deadline_s: float, **__: object) -> None:
        given.append(deadline_s)
        raise OSError

    monkeypatch.setattr(where.children, "run", run)
    smoke.run_scenarios([fake, replace(fake, id="smoke.two")], SmokeSettings(devices_kind="cpu"), where)
    assert given[0] > 4 * (20.0 + SmokeSettings(devices_kind="cpu").import_deadline_s)


def test_missing_interpreter_is_the_failure_of_the_run(tmp_path: Path) -> None:
    result = smoke.run(smoke.scenario(tmp_path, never="pass"), smoke.context(str(tmp_path / "no-python")))
    assert "no-python" in (result.failure or "")


def test_events_are_in_order(tmp_path: Path) -> None:
    events: list[SmokeEvent] = []
    smoke.session(smoke.scenario(tmp_path, good="case.phase('train')"), on_event=events.append).run()
    assert [(event.kind, event.detail) for event in events] == [
        ("importing", None),
        ("imported", None),
        ("started", None),
        ("phase", "import"),
        ("phase", "train"),
        ("ended", "trained"),
    ]


# kdoctor is imported first, so that the folder tests/kdoctor does not hide it.
_DOCTOR = """
import sys, kdoctor.probes.process.child, kdoctor.smoke.session
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from helpers import smoke
fake = smoke.scenario(Path(sys.argv[2]), hang=sys.argv[4], deadline_s=60.0)
smoke.session(fake, isolation=sys.argv[3], on_event=lambda event: print(event.detail, flush=True)).run()
"""


@cases(("fork", ""), ("fresh", ""), ("fork", "kdoctor check --model"))
def test_interruption_keeps_results_and_leaves_no_process(tmp_path: Path, isolation: str, needs_options: str) -> None:
    where = smoke.context(KDOCTOR_TEST_MARK=str(tmp_path))
    waiting = threading.Event()

    def watch(event: SmokeEvent) -> None:
        if event.detail == "second":
            waiting.set()

    slow = "import time\ncase.phase('first')\ncase.note(replicas=3)\ncase.phase('second')\ntime.sleep(60)"
    fake = smoke.scenario(tmp_path, quick="case.note(replicas=1)", slow=slow)
    fake = replace(fake, needs_options=needs_options)
    running = smoke.session(fake, where, watch, isolation=isolation, parallel=1)

    def interrupt() -> None:
        waiting.wait(20)
        where.children.end_all("it ran too long")

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(ChildrenEnded):
        running.run()
    known = running.known().runs[fake.id]
    assert isinstance(known, SmokeRun)
    begun = [("slow", "skipped", 3, "it ran too long, in phase second")] if needs_options else []
    found = [(case.name, case.outcome, case.replicas, case.skip_reason) for case in known.cases]
    assert found == [("quick", "trained", 1, None), *begun]
    assert known.failure is None
    assert left_of(str(tmp_path)) == []


def test_scenario_without_a_result_is_unavailable(tmp_path: Path) -> None:
    fake = smoke.scenario(tmp_path, never="pass")
    assert isinstance(smoke.session(fake).known().runs[fake.id], Unavailable)


@pytest.mark.parametrize("body", ["import time\ntime.sleep(60)", "import ctypes\nctypes.PyDLL(None).sleep(60)"])
@ISOLATIONS
def test_cases_end_when_kdoctor_is_killed(tmp_path: Path, isolation: str, body: str) -> None:
    doctor = subprocess.Popen(
        [sys.executable, "-c", _DOCTOR, str(Path(__file__).parents[2]), str(tmp_path), isolation, body],
        env={**os.environ, "KDOCTOR_TEST_MARK": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert doctor.stdout is not None
    while "import" not in doctor.stdout.readline().split():
        assert doctor.poll() is None
    doctor.send_signal(signal.SIGKILL)
    doctor.wait()
    doctor.stdout.close()
    assert left_of(str(tmp_path)) == []
