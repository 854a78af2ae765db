"""Runs on the nodes of an existing Ray cluster, by tasks that are bound to a node."""

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kdoctor.commands.packages import install_extra
from kdoctor.errors import UsageError
from kdoctor.probes.process.readers import Take
from kdoctor_fleet.exclusion import Engine as Words
from kdoctor_fleet.launch.engine import Ended, InterruptedRunError, first_problem, tied
from kdoctor_fleet.names import is_valid
from kdoctor_fleet.node_report import MOST_BYTES

_LATER_S = 10.0
"""How much later than the task itself its result is missed: the task ends what hangs."""
_ADDRESS = "address="


class Ray:
    """One task for each node. It requests all GPUs of the node, because Ray hides the others from it."""

    name = "ray"
    words: Words = "hosts"

    def __init__(self, options: Sequence[str]) -> None:
        try:
            import ray  # noqa: PLC0415 - an extra
            from ray import exceptions  # noqa: PLC0415
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415
        except ImportError as error:
            hint = f"Install it: {install_extra('ray')}"
            raise UsageError("--engine ray requires Ray, which is not installed", hint=hint) from error
        wrong = next((option for option in options if not option.startswith(_ADDRESS)), None)
        if wrong is not None:
            raise UsageError(f"--engine-option {wrong}: expected address=ADDRESS")
        address = options[-1].removeprefix(_ADDRESS) if options else os.environ.get("RAY_ADDRESS") or "auto"
        self._stdout, sys.stdout = sys.stdout, sys.stderr  # a thread of Ray prints crashes of workers to stdout
        try:
            ray.init(address=address, logging_level="ERROR", log_to_driver=False)
        except Exception as error:
            sys.stdout = self._stdout
            hint = "Name a running cluster: --engine-option address=HOST:6379"
            raise UsageError(f"no Ray cluster at {address}: {error}", hint=hint) from error
        self._ray, self._errors, self._bound = ray, exceptions, NodeAffinitySchedulingStrategy
        self._nodes = _by_name([node for node in ray.nodes() if node["Alive"]])
        self._task = ray.remote(_make_task())
        self._stopped = threading.Event()
        self._running: dict[Any, None] = {}

    def nodes(self, environ: Mapping[str, str]) -> str:  # noqa: ARG002 - the interface of engines
        """All living nodes of the cluster."""
        return ",".join(self._nodes)

    def address(self, node: str) -> str:
        """The address under which Ray knows the node.

        Raises:
            UsageError: Ray does not know it.
        """
        found = self._nodes.get(node)
        if found is None:
            raise UsageError(f"no node {node} in the Ray cluster, which has {self.nodes({})}")
        address: str = found["NodeManagerAddress"]
        return address

    def run(self, node: str, command: Sequence[str], take: Take, deadline_s: float) -> Ended:
        """Run the command in a task. A crash, a hang and a lost node have different reasons."""
        found = self._nodes.get(node)
        if found is None:
            return Ended(exit_code=None, problem=f"no such node in the Ray cluster, which has {self.nodes({})}")
        task = self._task.options(
            num_cpus=0,
            num_gpus=found["Resources"].get("GPU", 0),
            max_retries=0,
            scheduling_strategy=self._bound(node_id=found["NodeID"], soft=False),
        )
        if self._stopped.is_set():
            raise InterruptedRunError
        reference = task.remote(tied(command, deadline_s), MOST_BYTES + 1, deadline_s)
        self._running[reference] = None
        try:
            code, output, errors, timed_out = self._ray.get(reference, timeout=deadline_s + _LATER_S)
        except self._errors.GetTimeoutError:
            self._ray.cancel(reference, force=True)
            return Ended(exit_code=None, problem="the task did not start or does not answer", timed_out=True)
        except Exception as error:
            if self._stopped.is_set():
                raise InterruptedRunError from error
            return Ended(exit_code=None, problem=self._describe(error))
        finally:
            self._running.pop(reference, None)
        take(output)
        return Ended(exit_code=code, problem=first_problem(errors), timed_out=timed_out)

    def _describe(self, error: Exception) -> str:
        last = (str(error).strip().splitlines() or [""])[0]
        if isinstance(error, self._errors.NodeDiedError | self._errors.TaskUnschedulableError):
            return f"the node left the Ray cluster: {last}"
        if isinstance(error, self._errors.WorkerCrashedError):
            return f"the worker of Ray crashed: {last}"
        return f"{type(error).__name__}: {last}"

    def interrupt(self) -> None:
        """Cancel the tasks."""
        self._stopped.set()
        for reference in tuple(self._running):
            self._ray.cancel(reference, force=True)

    def end(self) -> None:
        """Leave the cluster, which ends the tasks of this program."""
        self._stopped.set()
        self._ray.shutdown()
        sys.stdout = self._stdout


def _by_name(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The nodes by host name. Several on one host have a part of their id, too."""
    number = Counter(node["NodeManagerHostname"] for node in nodes)

    def name(node: Mapping[str, Any]) -> str:
        host: str = node["NodeManagerHostname"]
        shown = host if number[host] == 1 else f"{host}-{node['NodeID'][:8]}"
        return shown if is_valid(shown) else f"ray-{node['NodeID'][:8]}"

    return {name(node): node for node in nodes}


def _make_task() -> Callable[[list[str], int, float], tuple[int, bytes, str, bool]]:
    """The function that workers run. It is nested so that Ray sends its code: workers have no kdoctor."""

    def run(command: list[str], most_bytes: int, deadline_s: float) -> tuple[int, bytes, str, bool]:
        import os  # noqa: PLC0415
        import signal  # noqa: PLC0415
        import subprocess  # noqa: PLC0415
        import tempfile  # noqa: PLC0415
        import threading  # noqa: PLC0415

        late = threading.Event()
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(  # noqa: S603 - the command of kdoctor
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )

            def end() -> None:
                late.set()
                os.killpg(process.pid, signal.SIGKILL)

            timer = threading.Timer(deadline_s, end)
            timer.start()
            output = process.stdout.read(most_bytes) if process.stdout else b""
            if len(output) == most_bytes:
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            timer.cancel()
            errors.seek(0, 2)
            errors.seek(max(errors.tell() - 65536, 0))
            said = errors.read().decode("utf-8", "replace")
        return (code if code >= 0 else 128 - code), output, said, late.is_set()

    return run
