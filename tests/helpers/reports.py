"""Reports like those of real runs: a CPU machine with cpu-smoke, and an H100 node that lost GPUs."""

from dataclasses import replace
from datetime import date
from typing import Any

from kdoctor.engine.categories import categories
from kdoctor.engine.causes import find_causes, relevant
from kdoctor.engine.fixes import plan_fixes
from kdoctor.engine.report import (
    ChecklistName,
    Conclusion,
    DecidedStep,
    Decision,
    Drift,
    DriftChange,
    GpuLinkNote,
    GpuNote,
    GpuWork,
    JudgedFinding,
    Report,
    Result,
    ScenarioNote,
    Training,
    Verdict,
    Waiver,
)
from kdoctor.engine.verdict import conclude
from kdoctor.model import Action, Evidence, Finding, Remedy, Rollback, Severity, Status, Unjudged

LONG_COMMAND = (
    "/home/ada/projects/long-name/.venv/bin/python -m pip install 'tensorflow[and-cuda]==2.21.0' "
    "--constraint /home/ada/projects/long-name/constraints.txt --upgrade-strategy only-if-needed"
)
MARKUP_COMMAND = "sed -i 's/[bold]x[/bold]/[red]y/' \"$HOME/[cfg].toml\""


UNDECIDED = Verdict(conclusion=Conclusion.UNKNOWN, exit_code=3, reason="not judged yet")
"""Replaced when :func:`complete` judges the results."""


def result(check_id: str, status: Status = Status.PASS, **changes: Any) -> Result:
    """A result, with evidence if it passed."""
    values: dict[str, Any] = {
        "id": check_id,
        "family": check_id.partition(".")[0],
        "title": f"{check_id.partition('.')[2].replace('-', ' ').capitalize()} is OK",
        "status": status,
        "severity": Severity.ERROR,
        "why": "Without it, a job fails late or trains incorrectly without an error.",
        "evidence": (Evidence(subject="this machine", observed="as expected"),) if status is Status.PASS else (),
        "reason": "the checklist expects no GPUs" if status is Status.SKIP else None,
        "duration_s": 0.001,
    }
    return Result(**{**values, **changes})


def finding(subject: str = "GPU 3 (0000:40:00.0)", **changes: Any) -> Finding:
    """A finding with commands for the fix, and without a rollback command."""
    values: dict[str, Any] = {
        "subject": subject,
        "observed": "on the PCI bus, but the driver does not list it",
        "expected": "listed by the driver",
        "remedy": Remedy(
            summary="Look for Xid messages of this GPU, then restart the machine:",
            action=Action.REBOOT,
            commands=("sudo dmesg | grep -i 'NVRM: Xid'", "sudo systemctl reboot"),
        ),
        "rollback": Rollback.irreversible("not possible (a reboot ends the programs on the other GPUs)"),
    }
    return Finding(**{**values, **changes})


def failure(check_id: str, *findings: Finding, **changes: Any) -> Result:
    """A check that failed with those findings."""
    judged = tuple(JudgedFinding(finding=item) for item in findings or (finding(),))
    return result(check_id, Status.FAIL, **{"findings": judged, **changes})


def waiver(check_id: str, **changes: Any) -> Waiver:
    """A waiver that is valid until the end of 2030."""
    values: dict[str, Any] = {
        "check": check_id,
        "subject": "*",
        "reason": "the riser card is replaced in March",
        "owner": "ml-platform",
        "expires": date(2030, 12, 31),
    }
    return Waiver(**{**values, **changes})


SCENARIOS = (
    ScenarioNote(
        id="smoke.baseline",
        kind="baseline",
        expect="Two replicas train, every variable is mirrored on both, the loss falls and stays finite, and the "
        "weights equal those of the same training on one device.",
    ),
    ScenarioNote(
        id="smoke.uneven-final-batch",
        kind="edge-case",
        expect="A short final batch that feeds every replica leaves finite weights.",
    ),
)


TRAININGS = (
    Training(
        scenario="smoke.baseline", case="mirrored", outcome="trained", devices="cpu", replicas=2,
        losses=(1.31, 0.84, 0.66), reference_losses=(1.31, 0.84, 0.66), build_s=0.21, first_step_s=0.34, step_s=0.0041,
    ),
    Training(
        scenario="smoke.uneven-final-batch", case="starved", outcome="trained", devices="cpu", replicas=2,
        losses=(0.71, None), step_s=0.0052,
    ),
)  # fmt: skip


GPU_WORK = (
    GpuWork(
        index=0, name="NVIDIA H100 80GB HBM3", samples=40, mean_utilization_percent=43.2, peak_utilization_percent=97.0,
        peak_memory_bytes=900.0 * 2**20, peak_temperature_c=89.0, peak_power_w=410.0, power_limit_w=700.0,
        held_back={"SW Power Cap": 3.5, "HW Thermal Slowdown": 1.6}, every_s=0.5,
        curves={
            "utilization_percent": (0.0, 50.0, None, 100.0, 25.0),
            "memory_bytes": (2.0**30, 2.0**30, None, 2.0**31, 2.0**30),
            "temperature_c": (41.0, 60.0, None, 89.0, 80.0),
        },
    ),
    GpuWork(index=1, name="NVIDIA H100 80GB HBM3", samples=4),
)  # fmt: skip


def complete(report: Report, **changes: Any) -> Report:
    """The report with these changes, and with what a run derives from its results."""
    report = replace(report, **changes)
    causes = find_causes(report.results)
    return replace(
        report,
        causes=causes,
        categories=categories(report.results, causes, report.fail_on),
        plan=plan_fixes(
            relevant(causes, report.fail_on),
            report.command,
            drift=report.drift,
            rollback="kdoctor rollback" if report.drift else "",
        ),
        verdict=conclude(report.results, report.fail_on, causes=causes, interrupted=report.interrupted),
    )


def cpu_report(**changes: Any) -> Report:
    """A machine without a GPU: GPU checks are skipped, and a known hazard of Keras 3 is a warning."""
    starved = failure(
        "smoke.starved-replica",
        finding(
            "case starved",
            observed="4 of 10 variables hold NaN after 2 epochs; fit raised nothing, and printed losses 0.71, nan",
            expected="finite weights on every replica",
            remedy=Remedy(
                summary="Drop the remainder of the dataset, or synchronize the normalization:",
                action=Action.CHANGE_CODE,
                commands=("grep -rn '\\.batch(' --include='*.py' .",),
            ),
            rollback=Rollback.nothing("not needed (this step is read-only)"),
        ),
        severity=Severity.WARNING,
        title="No final batch leaves a replica without examples",
        scenario="smoke.uneven-final-batch",
        evidence=(Evidence(subject="case fed", observed="finite; 0.0458 from one device (a tail of 1 over 2)"),),
    )
    values: dict[str, Any] = {
        "verdict": UNDECIDED,
        "command": "kdoctor check --checklist cpu-smoke",
        "target": "/home/ada/job/.venv/bin/python (CPython 3.11.7, venv; chosen as the active virtual environment)",
        "checklist": ChecklistName(name="cpu-smoke", version=1),
        "results": (
            result(
                "versions.tensorflow-installed",
                title="TensorFlow is installed in the target environment",
                evidence=(Evidence(subject="tensorflow", observed="2.21.0"),),
            ),
            result(
                "versions.keras-compatible",
                title="Keras trains correctly under tf.distribute with this TensorFlow",
                evidence=(Evidence(subject="keras", observed="3.15.1 on the tensorflow backend"),),
            ),
            result("gpu.count-expected", Status.SKIP),
            result("gpu.same-model", Status.SKIP),
            result("gpu.free", Status.SKIP),
            result("topology.pairs", Status.SKIP),
            result(
                "host.shared-memory",
                Status.UNKNOWN,
                title="Shared memory is large enough for data loaders and NCCL",
                reason="its size cannot be read: Permission denied",
                accepted="the sandbox hides it",
            ),
            result(
                "smoke.baseline",
                title="Training over all replicas gives the weights of training on one device",
                scenario="smoke.baseline",
                evidence=(
                    Evidence(subject="replicas", observed="2 of 2 asked for, on CPU:0 and CPU:1"),
                    Evidence(subject="weights", observed="10 of 10 mirrored; 1.2e-07 from one device, limit 1e-05"),
                    Evidence(subject="losses", observed="1.31, 0.84, 0.66"),
                    Evidence(subject="time", observed="import 3.3 s, build 0.21 s, step 4.1 ms; peak 812 MiB"),
                ),
            ),
            starved,
        ),
        "decisions": (
            Decision(action="fix forward", checks=("smoke.starved-replica",), decides="the owner of the environment"),
        ),
        "scenarios": SCENARIOS,
        "trainings": TRAININGS,
        "last_green_at": "2030-01-02T03:04:05Z",
        "duration_s": 34.21,
        "started_at": "2030-01-02T03:04:05Z",
    }
    return complete(Report(**{**values, **changes}))


def gpu_report(**changes: Any) -> Report:
    """A node that lost two GPUs. One command is long, and one looks like markup."""
    lost = failure(
        "gpu.visible-to-driver",
        finding("GPU 3 (0000:40:00.0)"),
        finding("GPU 6 (0000:70:00.0)"),
        title="The driver lists every GPU on the PCI bus",
        unjudged=(Unjudged(subject="0000:80:00.0", reason="its class is missing from sysfs"),),
    )
    mismatch = failure(
        "versions.driver-for-cuda",
        finding(
            "tensorflow 2.21.0",
            observed="built for CUDA 12.5, but driver 525.60.13 supports up to 12.0 | see [docs]",
            expected="a driver of 555 or newer",
            remedy=Remedy(
                summary="Install the matching build:", action=Action.REINSTALL, commands=(LONG_COMMAND, MARKUP_COMMAND)
            ),
            rollback=Rollback.to("tensorflow 2.20.0, as recorded", "python -m pip install 'tensorflow==2.20.0'"),
        ),
        title="The driver supports the CUDA release that TensorFlow was built for",
    )
    covered = result(
        "topology.pcie-width",
        Status.SKIP,
        reason="every finding is waived",
        title="GPUs use all PCIe lanes that GPU and slot support",
        findings=(
            JudgedFinding(
                finding=finding("GPU 1 (0000:20:00.0)", observed="8 lanes", expected="16 lanes"),
                waiver=waiver("topology.pcie-width"),
            ),
        ),
    )
    values: dict[str, Any] = {
        "verdict": UNDECIDED,
        "command": "kdoctor check",
        "target": "/opt/job/bin/python (CPython 3.11.7, venv; chosen by --python)",
        "checklist": ChecklistName(name="multi-gpu-keras", version=1),
        "results": (
            lost,
            mismatch,
            result(
                "gpu.replicas-match",
                Status.SKIP,
                reason="needs gpu.visible-to-driver, which failed",
                blocked_by="gpu.visible-to-driver",
            ),
            covered,
            result("host.shared-memory", Status.UNKNOWN, reason="the probe of the host did not finish within 5 s"),
        ),
        "decisions": (
            Decision(
                action="roll back at once",
                checks=("versions.driver-for-cuda",),
                decides="the owner of the machine",
                within="30 minutes",
                criteria=("at_once: versions.*",),
                steps=(
                    DecidedStep(summary="Install tensorflow 2.20.0:", commands=(LONG_COMMAND, MARKUP_COMMAND)),
                    DecidedStep(summary="Check again:", commands=("kdoctor check",)),
                ),
            ),
            Decision(action="investigate", checks=("gpu.visible-to-driver",), decides="the owner of the machine"),
        ),
        "unused_waivers": (waiver("topology.pairs", subject="GPU 0 - GPU 1"),),
        "drift": Drift(
            lock="ci/gpu-node.lock.yaml",
            recorded="2029-12-24T06:00:00+00:00",
            changes=(
                DriftChange(
                    fact="driver.version",
                    old="580.105.08",
                    new="575.57.08",
                    explains=("versions.driver-for-cuda", "gpu.visible-to-driver"),
                ),
                DriftChange(fact="environment.NCCL_DEBUG", old=None, new="INFO"),
                DriftChange(fact="packages.h5py", old="3.14.0", new=None),
            ),
            unread=("topology: NVML hung",),
        ),
        "gpus": tuple(
            GpuNote(index=index, name="NVIDIA H100 80GB HBM3", numa_node=index // 2, lost=index == 3)
            for index in range(4)
        ),
        "gpu_links": (
            GpuLinkNote(first=0, second=1, label="NV18"),
            GpuLinkNote(first=0, second=2, label="SYS"),
            GpuLinkNote(first=0, second=3, label="SYS!"),
            GpuLinkNote(first=1, second=2, label="NODE"),
            GpuLinkNote(first=1, second=3, label="?"),
            GpuLinkNote(first=2, second=3, label="PIX"),
        ),
        "duration_s": 192.0,
        "started_at": "2030-01-02T03:04:05Z",
    }
    return complete(Report(**{**values, **changes}))


def passing_report(**changes: Any) -> Report:
    """The CPU machine with passed and skipped checks only."""
    good = (Status.PASS, Status.SKIP)
    values: dict[str, Any] = {
        "results": tuple(item for item in cpu_report().results if item.status in good),
        "decisions": (),
    }
    return cpu_report(**{**values, **changes})


def unknown_report(**changes: Any) -> Report:
    """A GPU node in a sandbox: NVML is not readable, so that no GPU check can be evaluated."""
    reason = "NVML: Insufficient Permissions"
    values: dict[str, Any] = {
        "results": (
            result("versions.tensorflow-installed", evidence=(Evidence(subject="tensorflow", observed="2.21.0"),)),
            result("gpu.responding", Status.UNKNOWN, title="All GPUs respond to the driver", reason=reason),
            result("gpu.free", Status.UNKNOWN, title="GPUs are free", reason=reason),
            result("topology.pairs", Status.SKIP, reason="needs gpu.responding, which is unknown"),
        ),
        "decisions": (),
        "unused_waivers": (),
        "drift": None,
        "gpus": (),
        "gpu_links": (),
        "duration_s": 0.31,
    }
    return gpu_report(**{**values, **changes})


def with_text(report: Report, text: str) -> Report:
    """The report with a text in every field that comes from a machine."""
    bad = finding(
        text,
        observed=text,
        expected=text,
        remedy=Remedy(summary=text, action=Action.CONFIGURE, commands=(text,)),
        rollback=Rollback.to(text, text),
    )
    results = (
        failure("gpu.free", bad, title=text, why=text),
        result("host.shared-memory", Status.UNKNOWN, reason=text),
        result("versions.cuda-build", evidence=(Evidence(subject=text, observed=text),)),
    )
    return complete(report, target=text, results=results)
