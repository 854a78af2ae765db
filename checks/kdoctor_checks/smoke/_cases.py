"""What the checks of smoke trainings have in common: cases that are missing or did not finish, in words."""

from __future__ import annotations

import re

from packaging.version import InvalidVersion, Version

from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Action, Finding, NotApplicable, Remedy, Rollback, Unjudged
from kdoctor_checks._install import install, restore

TOLERANCE = 1e-4
"""Largest deviation of a weight that counts as equal. Measured: 0 to 2e-7 where Keras is right (the rounding of
float32 in another order of summation), 0.03 and more where it sums gradients or does not reduce them. See
docs/smoke.md."""

MEASURE_ONLY = Rollback.nothing("the training changed nothing on this machine")

_KERAS_RIGHT_SINCE = Version("3.10")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_OBJECT = re.compile(r"<(?:\w+\.)*(\w+) object at 0x[0-9a-f]+>")
_NODE = re.compile(r"\{\{function_node \S+\}\} ?")
_LINE_CHARACTERS = 300
_HEADLINES = ("Exception encountered when calling", "Graph execution error:", "Detected at node", 'File "')
_LOST = ("UnavailableError", "DeadlineExceededError", "AbortedError", "CancelledError")
"""What TensorFlow raises in a process of a cluster when another one is not heard any more."""
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)


def replicas_asked(run: SmokeRun) -> int | None:
    """Number of replicas that the run was to have."""
    return run.gpus_seen if run.replicas_requested is None else run.replicas_requested


def name_of(case: SmokeCase | str) -> str:
    """The subject of a case."""
    return f"case {case if isinstance(case, str) else case.name}"


def missing(run: SmokeRun, name: str) -> Unjudged:
    """A case that has no result."""
    return Unjudged(subject=name_of(name), reason=run.failure or "the run ended before it had a result")


def no_real_spread(run: SmokeRun, case: SmokeCase) -> NotApplicable | Unjudged | None:
    """Why a case over several replicas says nothing here: there was to be one, or there was one instead of more."""
    asked = replicas_asked(run)
    if asked == 1:
        return NotApplicable(reason="the training has one replica only")
    if case.replicas is None or asked is None:
        return Unjudged(subject=name_of(case), reason="the number of replicas is not known")
    if case.replicas < asked:
        return Unjudged(subject=name_of(case), reason=f"{framework(run)} made {case.replicas} of {asked} replicas")
    return None


def framework(run: SmokeRun) -> str:
    """What the scenario computes with."""
    return "JAX" if run.jax else "TensorFlow"


def spread_over(run: SmokeRun, case: SmokeCase) -> str:
    """How many replicas, or devices of a mesh on JAX, in words."""
    what = "device" if run.jax else "replica"
    return f"{case.replicas} {what}" + ("" if case.replicas == 1 else "s")


def did_not_finish(run: SmokeRun, case: SmokeCase) -> Finding:
    """A case that raised, died or hung where it should have trained."""
    return Finding(
        subject=name_of(case),
        observed=how_it_ended(case),
        expected=f"it trains on {replicas_asked(run) or 'all'} {'devices' if run.jax else 'replicas'}",
        remedy=_remedy(run, case),
        rollback=MEASURE_ONLY,
    )


def how_it_ended(case: SmokeCase) -> str:
    """How a case ended that did not train: error or signal, phase, where, and the last line of its error output."""
    where = f" {place(case.phase)}" if case.phase else ""
    if case.outcome == "skipped":
        return f"did not run: {case.skip_reason}"
    if case.outcome == "raised" and case.workers:  # its message names the worker, the error and the phase
        return _first_line(case.error_message) + _complaint(case, of="NCCL")
    if case.outcome == "raised":
        said = _first_line(case.error_message) or "no message"
        return f"{case.error_type}{where}: {said}{_complaint(case, of='NCCL')}"
    where += _progress(case)
    if case.outcome == "timed-out":
        took = f" after {case.seconds:.0f} s" if case.seconds else ""
        return f"hung{where} and was ended{took}{_innermost(case.stacks)}{_complaint(case)}"
    by = f"died of {case.signal}" if case.signal else f"exited with status {case.exit_code}"
    return f"{by}{where}{_innermost(case.stacks)}{_complaint(case) or _last_words(case.stderr_tail)}"


def place(phase: str | None) -> str:
    """A phase as the place where something happened: ``in phase trace``, ``in step 3``."""
    named = {"first step": "in the first step", "between steps": "between steps", None: "before its first phase"}
    return named.get(phase) or (f"in {phase}" if phase and phase.startswith("step ") else f"in phase {phase}")


def in_training(phase: str | None) -> bool:
    """Whether it is one of the phases of ``fit``, or of a loop in its stead."""
    phases = ("data", "trace", "first step", "between steps", "train")
    return phase is not None and (phase in phases or phase.startswith("step "))


def refused(case: SmokeCase, refusals: tuple[str, ...]) -> bool:
    """Whether the framework refused the model with one of these errors; not whether anything else went wrong."""
    return (
        case.outcome == "raised"
        and case.error_type in refusals
        and (case.phase in ("build", "inspect") or in_training(case.phase))
    )


def _progress(case: SmokeCase) -> str:
    """How far it came."""
    if case.finished:
        return f" (last finished: {case.finished})"
    if case.phase != "train" or case.steps is None:
        return ""
    return f", after step {case.steps}" if case.steps else ", in the first step, which is traced"


def _complaint(case: SmokeCase, *, of: str = "") -> str:
    """The last line of NCCL if there is one, or else of TensorFlow's native code."""
    lines = [line for line in case.log_lines if "nccl" in line.lower()] or ([] if of else case.log_lines)
    return f'; its log: "{lines[-1].strip()[:300]}"' if lines else ""


def _first_line(text: str | None) -> str:
    """The first line that says something: Keras and TensorFlow begin many messages with where, not with what."""
    lines = [plain for line in (text or "").splitlines() if (plain := _plain(line))]
    if lines and lines[0] == "in user code:":  # AutoGraph's stack comes before the error
        return _short(lines[-1])
    first = next((line for line in lines if not line.startswith(_HEADLINES)), lines[0] if lines else "")
    if first.endswith(("{", "(", "[")) and lines[-1].startswith(("}", ")", "]")):  # the value that it is about
        return _short(f"{first} ... {lines[-1]}")
    if first.endswith(":") and first in lines[:-1]:
        return _short(f"{first} {lines[lines.index(first) + 1]}")
    return _short(first)


def _plain(line: str) -> str:
    """A line without colours, addresses in memory and the node that TensorFlow wraps an operation in."""
    return _OBJECT.sub(r"\1", _NODE.sub("", _STYLE.sub("", line))).removesuffix(" name: ").strip()


def _short(line: str) -> str:
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} ..."


def _last_words(stderr: str | None) -> str:
    last = _first_line("\n".join(reversed((stderr or "").splitlines())))
    return f'; its last words: "{last}"' if last else ""


def where_it_waits(case: SmokeCase) -> str:
    """The innermost frames of what was ended, where they are known."""
    return _innermost(case.stacks)


def _innermost(stacks: str | None) -> str:
    """The innermost frames of the thread that crashed, or of the main thread, which is written last."""
    if not stacks:
        return ""
    threads = re.split(r"^(?=(?:Current thread|Thread) 0x)", stacks, flags=re.MULTILINE)
    current = [thread for thread in threads if thread.startswith("Current thread")] or threads
    frames = [
        f"{'/'.join(frame['path'].split('/')[-2:])}:{frame['line']} {frame['name']}"
        for frame in _FRAME.finditer(current[-1])
    ][:3]
    return f" at {', from '.join(frames)}" if frames else ""


def _remedy(run: SmokeRun, case: SmokeCase) -> Remedy:
    if case.outcome == "timed-out" and run.devices_kind == "gpu":
        return Remedy(
            summary="See where the GPUs wait for each other: run the job with NCCL's log, and once without "
            "peer-to-peer transfers; if that helps, look at IOMMU and PCIe ACS.",
            action=Action.CONFIGURE,
            commands=("export NCCL_DEBUG=INFO", "export NCCL_P2P_DISABLE=1  # to find the cause, not to keep"),
        )
    if case.signal == "SIGKILL":
        return Remedy(
            summary="The kernel or the container's limit ended it, most often for memory: free memory or raise the "
            "limit.",
            action=Action.CONFIGURE,
            commands=("free -h", "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.events"),
        )
    if case.outcome == "died":
        return Remedy(
            summary=f"Native code crashed: reinstall {framework(run)} and its CUDA libraries in versions that belong "
            "together, and see that no other build of them comes first on LD_LIBRARY_PATH.",
            action=Action.REINSTALL,
        )
    if case.outcome == "timed-out":
        return Remedy(
            summary="See where it hung; on a machine that is merely busy, run it again when it is idle.",
            action=Action.CONFIGURE,
        )
    if case.workers and any(name in (case.error_message or "") for name in _LOST):
        return Remedy(
            summary="One process stopped answering the others: see in its stacks and its error output, which kdoctor "
            "smoke --keep-artifacts DIR keeps, whether it was stopped, killed for its memory, or waits; look for a "
            "firewall or a proxy on the loopback.",
            action=Action.CONFIGURE,
        )
    imported = f"{framework(run)} {run.jax or run.tensorflow or ''}"
    return Remedy(
        summary=f"Make {imported} and {run.keras or 'Keras'} a pair that is known to work together; the error names "
        "what they disagree about.",
        action=Action.REINSTALL,
    )


def wrong_arithmetic(
    run: SmokeRun, case: SmokeCase, observed: str, target: Target | Unavailable, packages: Packages | Unavailable
) -> Finding:
    """Mirrored training that does not compute what one device computes."""
    remedy, rollback = _other_keras(run, target, packages)
    on_jax = f" on JAX {run.jax}" if run.jax else ""
    return Finding(
        subject=name_of(case),
        observed=f"{observed} ({run.keras or 'Keras unknown'}{on_jax}, {spread_over(run, case)})",
        expected="the same as on one device with the same global batches",
        remedy=remedy,
        rollback=rollback,
    )


def _other_keras(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable
) -> tuple[Remedy, Rollback]:
    name, _, version = (run.keras or "").partition(" ")
    if name != "keras" or run.jax or _is_right(version):
        summary = (
            f"No released version of {run.keras or 'this Keras'} is known to do this: look for patched code, a "
            "replaced optimizer or a broken transfer between the devices before you train."
        )
        return Remedy(summary=summary, action=Action.CHANGE_CODE), MEASURE_ONLY
    wanted = f"keras>={_KERAS_RIGHT_SINCE}"
    if not isinstance(target, Target) or not isinstance(packages, Packages):
        remedy = Remedy(summary=f"Install {wanted}.", action=Action.REINSTALL, commands=(f"pip install '{wanted}'",))
        return remedy, Rollback.to(f"{run.keras} of this run", f"pip install 'keras=={version}'")
    commands = (install(target, packages, wanted),)
    summary = f"Keras 3.2 to 3.9 do not reduce gradients or losses over replicas rightly: install {wanted}."
    return Remedy(summary=summary, action=Action.REINSTALL, commands=commands), restore(target, packages, "keras")


def _is_right(version: str) -> bool:
    try:
        return Version(version) >= _KERAS_RIGHT_SINCE
    except InvalidVersion:
        return True


def show(losses: tuple[float | None, ...]) -> str:
    """Losses of the epochs in a row."""
    return ", ".join("not finite" if loss is None else f"{loss:.4g}" for loss in losses)
