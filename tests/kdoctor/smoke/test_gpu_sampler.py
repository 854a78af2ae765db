"""Sampling of GPUs during scenarios that need none, with a fake NVML library."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers import nvml_library as nvml
from helpers import smoke
from helpers.cases import cases
from helpers.facts import environment, gpu, gpus
from helpers.marked import left_of
from kdoctor.facts import GpuSampling, SmokeRuns
from kdoctor.model import Status
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import ChildrenEnded
from kdoctor.smoke.gpu_sampler import Sampler
from kdoctor.smoke.scenario import Scenario
from kdoctor.smoke.session import SmokeSession, SmokeSettings
from kdoctor.snapshot.document import Snapshot, dumps, loads
from kdoctor.testing import compute_check
from kdoctor_checks.smoke.gpus_unslowed import gpus_unslowed
from kdoctor_checks.smoke.gpus_worked import gpus_worked

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="libnvidia-ml.so.1 is Linux'")]

MIB = 1024**2
INTERVAL_S = 0.05
TRAINS = """
    from pathlib import Path
    import time
    case.note(strategy="MirroredStrategy", replicas=2, devices=["/device:GPU:0", "/device:GPU:1"], gpus_seen=2)
    case.note(weights={"variables": 4, "mirrored": 4, "nonfinite": [], "replicas_agree": True})
    case.phase("build")
    Path(FLAG).touch()
    case.phase("train")
    time.sleep(1.6)
    Path(FLAG).unlink()
"""
"""A case that makes the fake GPUs busy for a while."""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nvml.build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    """The file that exists while the case trains."""
    return tmp_path / "busy"


Where = Callable[..., Context]


@pytest.fixture
def where(library: Path, tmp_path: Path) -> Where:
    def where(machine: nvml.Machine, folder: Path = library, **environ: str) -> Context:
        variables = machine.write(tmp_path / "machine") | {"KDOCTOR_TEST_MARK": str(tmp_path), **environ}
        return smoke.context(LD_LIBRARY_PATH=str(folder), **variables)

    return where


@pytest.fixture
def begun() -> Iterator[Callable[..., Sampler]]:
    samplers: list[Sampler] = []

    def begin(context: Context, *, patience_s: float = 5.0) -> Sampler:
        samplers.append(Sampler(context, deadline_s=60, interval_s=INTERVAL_S, patience_s=patience_s))
        return samplers[-1]

    yield begin
    for sampler in samplers:
        sampler.end()


def working(busy: Path, **changes: str | int) -> nvml.Facts:
    """An H100 that works while the file exists."""
    own: nvml.Facts = {
        "utilization_gpu": nvml.while_there(busy, 97, 0),
        "memory_used": nvml.while_there(busy, 900 * MIB, 4 * MIB),
        "processes": nvml.while_there(busy, f"4711:{890 * MIB}", "-"),
        "power_draw": nvml.while_there(busy, 650_000, 70_000),
        "clock_event_reasons": nvml.while_there(busy, "0x4", "0x1"),
        "field.197": nvml.while_there(busy, 7_000_000_000, 5_000_000_000),
        "field.198": 5_000_000_000,
    }
    return nvml.h100(**(own | changes))


def hot(busy: Path) -> nvml.Facts:
    """A GPU that works, gets hot and is slowed down by its hardware."""
    return working(
        busy,
        temperature=nvml.while_there(busy, 89, 41),
        clock_sm=nvml.while_there(busy, 345, 1980),
        clock_event_reasons=nvml.while_there(busy, "0x48", "0x1"),
    )


def eventually(condition: Callable[[], Any], seconds: float = 20) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def sampled(sampler: Sampler, count: int) -> Callable[[], bool]:
    """Whether at least ``count`` GPUs have a sample."""
    return lambda: sum(gpu.series is not None for gpu in sampler.facts().gpus) >= count


def train(fake: Scenario, context: Context, sampler: Sampler, **settings: Any) -> SmokeRuns:
    chosen = SmokeSettings(**{"devices_kind": "gpu", "preload": (), **settings})
    runs = SmokeSession([fake], chosen, context, sampler=sampler).run()
    sampler.end()
    return runs


def training(folder: Path, busy: Path) -> Scenario:
    return smoke.scenario(folder, idle="import time\ntime.sleep(0.4)", fit=TRAINS.replace("FLAG", repr(str(busy))))


def test_busy_hot_gpu_and_idle_gpu(where: Where, begun: Callable[..., Sampler], tmp_path: Path, busy: Path) -> None:
    context = where(nvml.Machine.of(hot(busy), nvml.h100()))
    sampler = begun(context)
    assert eventually(sampled(sampler, 2))
    runs = train(training(tmp_path, busy), context, sampler)
    facts = sampler.facts()
    assert (facts.state, facts.error) == ("ready", None)
    first, second = facts.gpus
    assert (first.uuid, first.bus_id) == (nvml.uuid(0), "0000:1b:00.0")
    assert (first.enforced_power_limit_w, first.clock_sm_max_mhz) == (700, 1980)
    assert (first.temperature_slowdown_c, first.temperature_slowdown_margin_c) == (None, -2)
    use = first.during
    assert first.before.samples > 0
    assert first.before.memory_used_bytes is not None
    assert first.before.memory_used_bytes.high == 4 * MIB
    assert use.temperature_c is not None
    assert (use.temperature_c.low, use.temperature_c.high) == (41, 89)
    assert use.power_draw_w is not None
    assert use.power_draw_w.high == 650
    assert use.clock_sm_mhz is not None
    assert use.clock_sm_mhz.low == 345
    slowed = {event.bit: event for event in use.events}
    assert set(slowed) == {0x1, 0x8, 0x40}
    # The case trains for 1.6 s; the samples around its ends, and a busy machine, add some tolerance.
    assert slowed[0x40].seconds == pytest.approx(1.6, abs=0.5)
    # 2 GB more within one interval; the later decrease is not a rate.
    assert use.pcie_sent_bytes_s is not None
    assert use.pcie_sent_bytes_s.high > 1e9
    assert use.pcie_sent_bytes_s.low == 0
    assert [use.case for use in first.cases] == ["idle", "fit"]
    idle, fit = first.cases
    assert idle.training_samples == 0
    assert idle.memory_used_bytes is not None
    assert idle.memory_used_bytes.high == 4 * MIB
    assert 3 <= fit.training_samples <= fit.samples
    assert fit.utilization_gpu_percent is not None
    assert fit.utilization_gpu_percent.high == 97
    assert {event.bit for event in fit.events} >= {0x8, 0x40}
    assert second.during.utilization_gpu_percent is not None
    assert second.during.utilization_gpu_percent.high == 0

    known = gpus(2, *(gpu(index, bus_id=one.bus_id, uuid=one.uuid) for index, one in enumerate(facts.gpus)))
    for judged_facts in (facts, again(facts)):
        judged = (judged_facts, runs, known, environment())
        worked = compute_check(gpus_worked, *judged)
        assert worked.status is Status.FAIL
        assert [item.finding.subject for item in worked.findings] == ["GPU 1 (0000:2b:00.0)"]
        unslowed = compute_check(gpus_unslowed, *judged)
        assert [item.finding.subject for item in unslowed.findings] == ["GPU 0 (0000:1b:00.0)"]
        assert "smoke.fake/fit, at most 89 C" in unslowed.findings[0].finding.observed


def again(facts: GpuSampling) -> GpuSampling:
    """The same facts after writing and reading a snapshot."""
    read = loads(dumps(Snapshot.now({GpuSampling: facts})), {GpuSampling.group: GpuSampling}).facts[GpuSampling]
    assert isinstance(read, GpuSampling)
    assert read == facts
    return read


def test_two_busy_gpus_pass(where: Where, begun: Callable[..., Sampler], tmp_path: Path, busy: Path) -> None:
    context = where(nvml.Machine.of(working(busy), working(busy)))
    sampler = begun(context)
    assert eventually(sampled(sampler, 2))
    runs = train(training(tmp_path, busy), context, sampler)
    facts = sampler.facts()
    known = gpus(2, *(gpu(index, bus_id=one.bus_id, uuid=one.uuid) for index, one in enumerate(facts.gpus)))
    for check in (gpus_worked, gpus_unslowed):
        result = compute_check(check, facts, runs, known, environment())
        assert (result.status, len(result.evidence)) == (Status.PASS, 2)


def test_samples_of_parallel_cases_are_not_attributed(
    where: Where, begun: Callable[..., Sampler], tmp_path: Path, busy: Path
) -> None:
    context = where(nvml.Machine.of(working(busy)))
    sampler = begun(context)
    assert eventually(sampled(sampler, 1))
    train(training(tmp_path, busy), context, sampler, parallel=2)
    (only,) = sampler.facts().gpus
    assert only.cases == ()
    assert only.during.utilization_gpu_percent is not None
    assert only.during.utilization_gpu_percent.high == 97


def test_hanging_gpu_does_not_stop_the_others(
    where: Where, begun: Callable[..., Sampler], tmp_path: Path, busy: Path
) -> None:
    stuck = working(busy, **{"call.nvmlDeviceGetPowerUsage": nvml.while_there(busy, "hang", 0)})
    context = where(nvml.Machine.of(working(busy), stuck))
    sampler = begun(context, patience_s=0.3)
    assert eventually(sampled(sampler, 2))
    train(training(tmp_path, busy), context, sampler)
    first, second = sampler.facts().gpus
    assert (first.hangs, second.hangs) == (None, "power_draw_w")
    assert first.during.samples > second.during.samples
    assert second.longest_gap_s is not None
    assert second.longest_gap_s > 1
    assert left_of(tmp_path) == []


def test_hanging_driver_does_not_block_the_end(
    where: Where, begun: Callable[..., Sampler], tmp_path: Path, busy: Path
) -> None:
    context = where(nvml.Machine.of(working(busy)).order("nvmlInit", nvml.HANG))
    sampler = begun(context)
    assert eventually(lambda: "nvmlInit" in (sampler.facts().error or ""))
    started = time.monotonic()
    sampler.end()
    assert time.monotonic() - started < 5
    assert (sampler.facts().state, sampler.facts().gpus) == ("failed", ())
    assert left_of(tmp_path) == []


def test_absent_library_is_reported_and_fails_nothing(
    where: Where, begun: Callable[..., Sampler], tmp_path: Path
) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a real NVIDIA driver")
    context = where(nvml.Machine({}), tmp_path)
    sampler = begun(context)
    fake = smoke.scenario(tmp_path, good="case.note(replicas=1)")
    runs = train(fake, context, sampler)
    run = runs.runs[fake.id]
    assert [case.outcome for case in run.cases] == ["trained"]  # type: ignore[union-attr]
    assert eventually(lambda: sampler.facts().state == "library-absent") or "NVML did not respond" in str(
        sampler.facts().error
    )


@cases(
    (nvml.driver_not_loaded(), "driver-not-loaded"),
    (nvml.permission_denied(), "no-permission"),
    (nvml.two_l4().order("nvmlDeviceGetCount_v2", nvml.UNKNOWN), "failed"),
)
def test_unavailable_driver_has_state_and_error(
    where: Where, begun: Callable[..., Sampler], machine: nvml.Machine, state: str
) -> None:
    sampler = begun(where(machine))
    assert eventually(lambda: "NVML_ERROR" in (sampler.facts().error or ""))
    assert sampler.facts().state == state


def test_lost_gpu_does_not_affect_the_others(where: Where, begun: Callable[..., Sampler]) -> None:
    sampler = begun(where(nvml.one_gpu_lost(1)))
    assert eventually(lambda: sampled(sampler, 1)() and len(sampler.facts().gpus) == 2)
    first, second = sampler.facts().gpus
    assert first.before.samples > 0
    assert (second.before.samples, second.errors) == (0, {"handle": "NVML_ERROR_GPU_IS_LOST"})


def test_fields_missing_in_an_old_driver_are_left_out(
    where: Where, begun: Callable[..., Sampler], tmp_path: Path, busy: Path
) -> None:
    (tmp_path / "old").mkdir()
    old = nvml.build(tmp_path / "old", "WITHOUT_PROCESSES_V3", "WITHOUT_MEMORY_V2", "OLD")
    machine = nvml.Machine.of(nvml.l4(processes="4711:5"))
    sampler = begun(where(machine, old))
    assert eventually(sampled(sampler, 1))
    (only,) = sampler.facts().gpus
    assert only.errors["temperature_margin_c"] == "NVML_ERROR_FUNCTION_NOT_FOUND"
    assert only.errors["pcie_sent_bytes"] == "NVML_ERROR_NOT_SUPPORTED"
    assert only.before.temperature_margin_c is None
    assert only.before.processes is not None
    assert only.before.processes.high == 1
    assert only.before.memory_used_bytes is not None
    assert [event.bit for event in only.before.events] == [1]


def test_32_bit_counter_has_no_rate(where: Where, begun: Callable[..., Sampler]) -> None:
    sampler = begun(where(nvml.Machine.of(nvml.l4(**{"field.197": 4_000_000_000, "field.198": 1}))))
    assert eventually(sampled(sampler, 1))
    (only,) = sampler.facts().gpus
    assert "32" in only.errors["pcie_sent_bytes"]
    assert only.before.pcie_sent_bytes_s is None


def test_killed_sampling_is_reported_with_its_samples(
    where: Where, begun: Callable[..., Sampler], tmp_path: Path
) -> None:
    sampler = begun(where(nvml.two_l4()))
    assert eventually(sampled(sampler, 2))
    for process in left_of(tmp_path, 0):
        process.kill()
    assert eventually(lambda: "SIGKILL" in (sampler.facts().error or ""))
    facts = sampler.facts()
    assert facts.state == "ready"
    assert all(one.before.samples for one in facts.gpus)


# --- no process is left ---------------------------------------------------------------------------------------------


def test_interruption_ends_the_sampling(
    where: Where, begun: Callable[..., Sampler], tmp_path: Path, busy: Path
) -> None:
    context = where(nvml.Machine.of(working(busy), working(busy)))
    sampler = begun(context)
    assert eventually(sampled(sampler, 2))
    fake = smoke.scenario(tmp_path, slow="import time\ntime.sleep(60)")
    session = SmokeSession([fake], SmokeSettings(devices_kind="gpu", preload=()), context, sampler=sampler)
    threading.Timer(1.0, context.children.end_all).start()
    with pytest.raises(ChildrenEnded):
        session.run()
    sampler.end()
    assert left_of(tmp_path) == []
    assert sampler.facts().gpus[0].during.samples > 0


# The folder tests is on the path only for the import, because the sampling process inherits the path.
_DOCTOR = """
import sys, time, kdoctor.smoke.gpu_sampler
sys.path.insert(0, sys.argv[1])
from helpers import smoke
del sys.path[0]
sampler = kdoctor.smoke.gpu_sampler.Sampler(smoke.context(), deadline_s=60, interval_s=0.05)
for _ in range(1000):
    if sampler.facts().gpus:
        break
    time.sleep(0.02)
print("sampling" if sampler.facts().gpus else sampler.facts(), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("hangs", [False, True])
def test_sampling_ends_when_kdoctor_is_killed(library: Path, tmp_path: Path, *, hangs: bool) -> None:
    machine = nvml.two_l4()
    if hangs:
        machine = machine.order("nvmlDeviceGetTemperature", nvml.HANG, gpu=1)
    variables = {"LD_LIBRARY_PATH": str(library), "KDOCTOR_TEST_MARK": str(tmp_path), **machine.write(tmp_path / "m")}
    doctor = subprocess.Popen(
        [sys.executable, "-c", _DOCTOR, str(Path(__file__).parents[2])],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert doctor.stdout is not None
    said = doctor.stdout.readline()
    doctor.send_signal(signal.SIGKILL)
    doctor.wait()
    doctor.stdout.close()
    assert said == "sampling\n"
    assert left_of(tmp_path) == []
