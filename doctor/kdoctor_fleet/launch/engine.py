"""What starts a command on a node. Each engine is one file."""

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol

from kdoctor.errors import UsageError
from kdoctor.probes.process.child import ChildEnd, Children, ChildrenEnded
from kdoctor.probes.process.readers import Take
from kdoctor.records import record
from kdoctor_fleet.exclusion import Engine as Words

GRACE_S = 5.0
"""How long a program may take to end what it started on the node, before it is killed."""


_ASK_S = 60.0
_MOST_BYTES = 2**30


class InterruptedRunError(Exception):
    """The run was interrupted: nothing is started any more, and what runs is ended."""


@record
class Ended:
    """How the command ended on a node."""

    exit_code: int | None
    """None if it did not end by itself."""
    problem: str
    """Why it did not, or what it or the engine wrote to stderr, in one line."""
    timed_out: bool = False
    asked_at: str = ""
    """When it was asked for, if that was before this run: UTC, ISO 8601."""


class Engine(Protocol):
    """Starts a command on a node and passes on its stdout."""

    name: str
    words: Words
    """Whose words leave nodes out of a job."""

    def nodes(self, environ: Mapping[str, str]) -> str:
        """The set of nodes to use if none is named; empty if there is none."""
        ...

    def address(self, node: str) -> str:
        """The host under which other nodes reach a node.

        Raises:
            UsageError: that is not known, or this engine cannot start a program on several nodes.
        """
        ...

    def run(self, node: str, command: Sequence[str], take: Take, deadline_s: float) -> Ended:
        """Run a command on a node to its end or its deadline. Called in many threads at once.

        Raises:
            InterruptedRunError: ``interrupt`` or ``end`` was called.
        """
        ...

    def interrupt(self) -> None:
        """Start nothing any more, and ask everything that runs to end."""
        ...

    def end(self) -> None:
        """End everything that still runs."""
        ...


class ProgramEngine(ABC):
    """An engine that is a program on this machine, started once for each node."""

    program: str
    package: str
    """What to install if there is no such program."""

    def __init__(self, options: Sequence[str]) -> None:
        if shutil.which(self.program) is None:
            raise UsageError(f"{self.program} is not installed here", hint=f"Install it: {self.package}")
        self.options = tuple(options)
        """Additional options of the program, as the user gave them."""
        self._children = Children()

    @abstractmethod
    def argv(self, node: str, command: Sequence[str], deadline_s: float) -> list[str]:
        """The program with its arguments."""

    def problem(self, end: ChildEnd) -> str:
        """What went wrong, in one line."""
        return first_problem(end.stderr)

    def ask(self, *argv: str) -> bytes:
        """What a program on this machine answers.

        Raises:
            UsageError: it fails.
        """
        written: list[bytes] = []

        def take(piece: bytes) -> bool:
            written.append(piece)
            return len(written) * len(piece) < _MOST_BYTES

        end = self._children.run(argv, env=os.environ, deadline_s=_ASK_S, take=take)
        if not end.ok:
            raise UsageError(f"{' '.join(argv[:3])}: {first_problem(end.stderr) or end.describe()}")
        return b"".join(written)

    def run(self, node: str, command: Sequence[str], take: Take, deadline_s: float) -> Ended:
        """Run the program to its end or its deadline."""
        argv = self.argv(node, command, deadline_s)
        try:
            end = self._children.run(argv, env=os.environ, deadline_s=deadline_s, take=take, grace_s=GRACE_S)
        except ChildrenEnded as ended:
            raise InterruptedRunError from ended
        except (OSError, RuntimeError, ValueError) as error:
            return Ended(exit_code=None, problem=f"{self.program} could not be started: {error}")
        problem = f"{self.program} died of {end.signal}" if end.signal else self.problem(end)
        return Ended(exit_code=end.exit_code, problem=problem, timed_out=end.timed_out)

    def interrupt(self) -> None:
        """Send SIGTERM to the programs."""
        self._children.ask_all_to_end()

    def end(self) -> None:
        """Kill the programs."""
        self._children.end_all()


_TIED = """\
exec 3<&0
if command -v timeout >/dev/null 2>&1; then set -- timeout -k 10 "$@"; else shift; fi
"$@" </dev/null 3<&- &
job=$!
(cat <&3 >/dev/null; kill -TERM $job; sleep 10; kill -KILL $job) >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait $job
code=$?
kill $watch 2>/dev/null
exit $code
"""
"""Ends the command when the standard input ends, or after a time."""
_LATER_S = 15.0


def tied(command: Sequence[str], deadline_s: float) -> list[str]:
    """The command for a node, which ends there when the connection or this program is gone, or if it hangs.

    Its standard input is a silent pipe from this program. The system closes it when this program dies, and sshd, srun
    or Ray when the connection ends. ``timeout`` ends the command and what it started, if that is not noticed.
    """
    return ["sh", "-c", _TIED, "kdoctor-node", f"{deadline_s + _LATER_S:.0f}", *command]


def first_problem(stderr: str) -> str:
    """The line of kdoctor's error, else the last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip(" \t─╭╮╰╯│")]
    return next((line for line in lines if line.startswith("kdoctor: ")), lines[-1] if lines else "")
