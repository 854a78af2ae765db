"""The companion of a watched training, on machines that are folders."""

import time
from pathlib import Path

import pytest

from kdoctor.facts import GpuSampling, KernelLog, Unavailable
from kdoctor.probes.probe import ROOT_VARIABLE
from kdoctor_watch.companion import Companion

XID = "4,812,75000250,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python, GPU has fallen off the bus.\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "dev/kmsg"
    path.parent.mkdir()
    path.write_text(XID, encoding="utf-8")
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    return path


def companion(on_gpus: bool = False) -> Companion:  # noqa: FBT001, FBT002 - a helper
    return Companion(lambda: None, interval_s=60, on_gpus=on_gpus, device_memory=dict)


def test_only_new_lines_of_the_kernel_log_count(log: Path) -> None:
    watching = companion()
    watching.tick()
    before = watching.facts()[KernelLog]
    with log.open("a", encoding="utf-8") as file:
        file.write(XID.replace("79", "48"))
    watching.tick()
    after = watching.facts()[KernelLog]
    watching.close()
    assert isinstance(before, KernelLog)
    assert isinstance(after, KernelLog)
    assert (before.lines, [event.code for event in after.events]) == (0, [48])


def test_missing_kernel_log_is_unavailable(log: Path) -> None:
    log.unlink()
    watching = companion()
    watching.tick()
    facts = watching.facts()
    watching.close()
    assert isinstance(facts[KernelLog], Unavailable)
    assert [use.name for use in watching.memory] == ["process"]


@pytest.mark.usefixtures("log")
def test_job_on_the_cpu_is_not_sampled() -> None:
    watching = companion()
    sampling = watching.facts()[GpuSampling]
    watching.close()
    assert isinstance(sampling, GpuSampling)
    assert sampling.state == "not-started"


@pytest.mark.usefixtures("log")
def test_sampling_without_driver_says_why_and_ends() -> None:
    watching = companion(on_gpus=True)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        sampling = watching.facts()[GpuSampling]
        if isinstance(sampling, GpuSampling) and sampling.state == "library-absent":
            break
        time.sleep(0.05)
    watching.close()
    assert isinstance(sampling, GpuSampling)
    assert sampling.state == "library-absent"


@pytest.mark.usefixtures("log")
def test_error_of_a_look_does_not_stop_the_others() -> None:
    def fail() -> dict[str, int]:
        raise OSError("no memory info")

    ticks: list[int] = []
    watching = Companion(lambda: ticks.append(1), interval_s=60, on_gpus=False, device_memory=fail)
    watching.tick()
    watching.close()
    assert ticks == [1]
    assert watching.failures == {"memory": "OSError: no memory info"}
