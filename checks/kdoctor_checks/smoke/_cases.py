"""Describes how a case of a smoke training ended."""

import re
from collections.abc import Sequence
from itertools import takewhile

from kdoctor.facts import SmokeCase

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_OBJECT = re.compile(r"<(?:\w+\.)*(\w+) object at 0x[0-9a-f]+>")
_NODE = re.compile(r"\{\{function_node \S+\}\} ?")
_LINE_CHARACTERS = 300
_HEADLINES = (
    "Exception encountered when calling", "Graph execution error:", "Detected at node", "<stack traces", 'File "',
)  # fmt: skip
_FRAME = re.compile(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)
_KDOCTOR = re.compile(r"/kdoctor(_\w+)?/|^<string>$")
_PYTHON = re.compile(r"/python\d[\d.]*/(?!(site|dist)-packages/)|^<frozen ")
_INSTALLED = re.compile(r"/(site|dist)-packages/")
_TRAINING_PHASES = ("data", "trace", "first step", "between steps", "train")


def describe_end(case: SmokeCase) -> str:
    """The error, hang or crash that ended a case, with its phase and the relevant line of its output."""
    where = f" {in_phase(case.phase)}" if case.phase else ""
    if case.outcome == "skipped":
        return f"skipped: {case.skip_reason}"
    if case.outcome == "raised" and case.workers:  # the message names worker, error and phase
        return _first_line(case.error_message) + _log_line(case, nccl_only=True)
    if case.outcome == "raised":
        message = _first_line(case.error_message) or "no message"
        return f"{case.error_type}{where}: {message}{_log_line(case, nccl_only=True)}"
    where += _progress(case)
    if case.outcome == "timed-out":
        seconds = f" after {case.seconds:.0f} s" if case.seconds else ""
        log = "" if own_place(case.stacks) else _log_line(case)
        return f"hung{where} and was ended{seconds}{innermost_frames(case.stacks)}{log}"
    ended = f"terminated by {case.signal}" if case.signal else f"exited with status {case.exit_code}"
    return f"{ended}{where}{innermost_frames(case.stacks)}{_log_line(case) or _last_stderr_line(case.stderr_tail)}"


def in_phase(phase: str | None) -> str:
    """A phase with its preposition: ``in phase trace``, ``in step 3``."""
    named = {"first step": "in the first step", "between steps": "between steps", None: "before its first phase"}
    return named.get(phase) or (f"in {phase}" if phase and phase.startswith("step ") else f"in phase {phase}")


def was_refused(case: SmokeCase, refusals: Sequence[str]) -> bool:
    """Whether the framework refused the model with one of these errors, while it was built or trained."""
    phase = case.phase or ""
    is_model_phase = phase in ("build", "inspect", *_TRAINING_PHASES) or phase.startswith("step ")
    return case.outcome == "raised" and case.error_type in refusals and is_model_phase


def innermost_frames(stacks: str | None) -> str:
    """Where it was, in at most three frames: the innermost one, and those of the job's own files if it has any."""
    frames = _telling(stacks)
    shown = [frame for number, frame in enumerate(frames) if not number or _is_own(frame)]
    shown = (shown if any(map(_is_own, shown)) else frames)[:3]
    return f" at {', from '.join(map(_shown, shown))}" if shown else ""


def own_place(stacks: str | None) -> str | None:
    """The innermost frame if it is in the job's own files: nothing below Python holds it up, and no log says more."""
    frames = _telling(stacks)
    return _shown(frames[0]) if frames and _is_own(frames[0]) else None


def _telling(stacks: str | None) -> list[re.Match[str]]:
    """The frames above kdoctor's of the thread that crashed, or of one that runs the job's code.

    Without either, of one that waits for more than another thread. The main thread, which is last, comes before others.
    """
    threads = re.split(r"^(?=(?:Current thread|Thread) 0x)", stacks or "", flags=re.MULTILINE)
    current = [thread for thread in threads if thread.startswith("Current thread")]
    known = [found for thread in reversed(current or threads) if (found := list(_FRAME.finditer(thread)))]
    above = [list(takewhile(lambda frame: not _KDOCTOR.search(frame["path"]), frames)) for frames in known]
    own = [frames for frames in above if any(map(_is_own, frames))]
    busy = [frames for frames in above if frames and not _PYTHON.search(frames[0]["path"])]
    return next(iter(own or busy or known), [])


def _is_own(frame: re.Match[str]) -> bool:
    return not any(code.search(frame["path"]) for code in (_KDOCTOR, _PYTHON, _INSTALLED))


def _shown(frame: re.Match[str]) -> str:
    return f"{'/'.join(frame['path'].split('/')[-2:])}:{frame['line']} {frame['name']}"


def format_losses(losses: tuple[float | None, ...]) -> str:
    """The losses of the epochs: ``1, 0.5, not finite``."""
    return ", ".join("not finite" if loss is None else f"{loss:.4g}" for loss in losses)


def _progress(case: SmokeCase) -> str:
    if case.finished:
        return f" (last finished: {case.finished})"
    if case.phase != "train" or case.steps is None:
        return ""
    return f" after step {case.steps}" if case.steps else " in the first step (tracing)"


def _log_line(case: SmokeCase, *, nccl_only: bool = False) -> str:
    """The last log line of NCCL, or else of TensorFlow's native code."""
    lines = [line for line in case.log_lines if "nccl" in line.lower()] or ([] if nccl_only else case.log_lines)
    return f'; log: "{lines[-1].strip()[:_LINE_CHARACTERS]}"' if lines else ""


def _last_stderr_line(stderr: str | None) -> str:
    last = _first_line("\n".join(reversed((stderr or "").splitlines())))
    return f'; last line of stderr: "{last}"' if last else ""


def _first_line(text: str | None) -> str:
    """The first informative line. Many messages of Keras and TensorFlow begin with the location of the error."""
    lines = [plain for line in (text or "").splitlines() if (plain := _plain(line))]
    if lines and lines[0] == "in user code:":  # AutoGraph prints its stack before the error
        return _shorten(lines[-1])
    first = next((line for line in lines if not line.startswith(_HEADLINES)), lines[0] if lines else "")
    if first.endswith(("{", "(", "[")) and lines[-1].startswith(("}", ")", "]")):  # a value over several lines
        return _shorten(f"{first} ... {lines[-1]}")
    if first.endswith(":") and first in lines[:-1]:
        return _shorten(f"{first} {lines[lines.index(first) + 1]}")
    return _shorten(first)


def _plain(line: str) -> str:
    """A line without colors, memory addresses and TensorFlow's node names."""
    return _OBJECT.sub(r"\1", _NODE.sub("", _STYLE.sub("", line))).removesuffix(" name: ").strip()


def _shorten(line: str) -> str:
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]} ..."
