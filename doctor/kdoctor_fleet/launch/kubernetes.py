"""Collects the reports of pods by the Python client of Kubernetes' API, or by kubectl where it is not installed."""

import contextlib
import json
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from yaml import YAMLError

from kdoctor.commands.packages import install_extra
from kdoctor.errors import UsageError
from kdoctor.probes.process.readers import Take
from kdoctor_fleet.launch.engine import Ended, Engine, InterruptedRunError, ProgramEngine
from kdoctor_fleet.launch.pods import Pods, selector_of


class Kubectl(Pods, ProgramEngine):
    """The user's kubectl, with its configuration."""

    program = "kubectl"
    package = f"{install_extra('kubernetes')}, or https://kubernetes.io/docs/tasks/tools/"

    def __init__(self, options: Sequence[str]) -> None:
        self.selector, others = selector_of(options)
        ProgramEngine.__init__(self, others)

    def list_pods(self) -> bytes:
        """``kubectl get pods``."""
        return self.ask(self.program, "get", "pods", *self.options, f"--selector={self.selector}", "--output=json")

    def read_pod(self, pod: str) -> bytes:
        """``kubectl get pod``."""
        return self.ask(self.program, "get", "pod", pod, *self.options, "--output=json")

    def read_log(self, pod: str, container: str, *, follow: bool, take: Take, deadline_s: float) -> Ended:
        """``kubectl logs``."""
        words = [f"--container={container}", *(["--follow"] if follow else [])]
        return ProgramEngine.run(self, pod, words, take, deadline_s)

    def argv(self, node: str, command: Sequence[str], deadline_s: float) -> list[str]:  # noqa: ARG002
        """``kubectl logs`` of a pod."""
        return [self.program, "logs", *self.options, *command, f"pod/{node}"]


_KNOWN = ("--namespace", "--context", "--kubeconfig")
"""Options of kubectl that the client understands. With others, kubectl is used."""
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError)
"""What the client raises for a configuration of another shape."""
_ASK_S = 60.0
_CONNECT_S = 30.0
_PIECE = 65536


def kubernetes(options: Sequence[str]) -> Engine:
    """The client, if it is installed and the options are those that it knows; else kubectl.

    Raises:
        UsageError: neither can be used.
    """
    _, others = selector_of(options)
    known = all(option.partition("=")[0] in _KNOWN and "=" in option for option in others)
    return KubernetesApi(options) if known and find_spec("kubernetes") else Kubectl(options)


class KubernetesApi(Pods):
    """The client, with the user's configuration of kubectl, or that of the pod in which it runs."""

    def __init__(self, options: Sequence[str]) -> None:
        from kubernetes import client, config  # noqa: PLC0415 - an extra

        self.selector, others = selector_of(options)
        values = dict(option.removeprefix("--").split("=", 1) for option in others)
        self._errors = (client.ApiException, OSError, *_http_errors())
        try:
            api, namespace = _connect(config, client, values.get("kubeconfig"), values.get("context"))
        except (config.ConfigException, OSError, YAMLError, *_MALFORMED) as error:
            raise UsageError(f"the configuration of Kubernetes cannot be used: {_line(error)}") from error
        self._core = client.CoreV1Api(api)
        self._namespace = values.get("namespace") or namespace
        self._stopped = False
        self._open: dict[int, Any] = {}

    def list_pods(self) -> bytes:
        """The pods of the namespace."""
        try:
            answer = self._core.list_namespaced_pod(
                self._namespace, label_selector=self.selector, _preload_content=False, _request_timeout=_ASK_S
            )
        except self._errors as error:
            raise UsageError(f"the pods cannot be listed: {_line(error)}") from error
        content: bytes = answer.data
        return content

    def read_pod(self, pod: str) -> bytes:
        """The pod."""
        try:
            answer = self._core.read_namespaced_pod(
                pod, self._namespace, _preload_content=False, _request_timeout=_ASK_S
            )
        except self._errors as error:
            raise UsageError(f"the pod cannot be read: {_line(error)}") from error
        content: bytes = answer.data
        return content

    def read_log(self, pod: str, container: str, *, follow: bool, take: Take, deadline_s: float) -> Ended:
        """Read the log of a pod. At the deadline, the connection is closed."""
        if self._stopped:
            raise InterruptedRunError
        ends_at = time.monotonic() + deadline_s
        log: Any = None
        timer = threading.Timer(deadline_s, lambda: log and log.shutdown())
        timer.daemon = True
        timer.start()
        try:
            log = self._core.read_namespaced_pod_log(
                pod, self._namespace, container=container, follow=follow,
                _preload_content=False, _request_timeout=(_CONNECT_S, deadline_s),
            )  # fmt: skip
            self._open[id(log)] = log
            goes_on = all(take(piece) for piece in log.stream(_PIECE))
        except self._errors as error:
            if self._stopped:
                raise InterruptedRunError from error
            late = time.monotonic() >= ends_at
            problem = "" if late else f"its log cannot be read: {_line(error)}"
            return Ended(exit_code=None, problem=problem, timed_out=late)
        finally:
            timer.cancel()
            self._open.pop(id(log), None)
            if log is not None:
                log.close()
        if self._stopped:
            raise InterruptedRunError
        return Ended(exit_code=0, problem="", timed_out=goes_on and time.monotonic() >= ends_at)

    def interrupt(self) -> None:
        """Close the connections."""
        self._stopped = True
        for log in tuple(self._open.values()):
            log.shutdown()

    def end(self) -> None:
        """Close the connections."""
        self.interrupt()


def _connect(config: Any, client: Any, file: str | None, context: str | None) -> tuple[Any, str]:
    """The client of the API and the namespace to use: by a configuration of kubectl, or by that of this pod."""
    try:
        contexts, active = config.list_kube_config_contexts(config_file=file)
    except config.ConfigException:
        if file or context:
            raise
        config.load_incluster_config()
        return client.ApiClient(), _own_namespace()
    chosen = next((item for item in contexts if item["name"] == context), active)
    api = config.new_client_from_config(config_file=file, context=context)
    return api, str(chosen.get("context", {}).get("namespace") or "default")


def _own_namespace() -> str:
    with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace", encoding="utf-8") as file:  # noqa: PTH123
        return file.read().strip()


def _http_errors() -> tuple[type[Exception], ...]:
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - of the extra

    return (HTTPError,)


def _line(error: BaseException) -> str:
    """Status and message of an answer, or the error in one line."""
    status, said = getattr(error, "status", None), getattr(error, "reason", None)
    with contextlib.suppress(ValueError, TypeError, LookupError):
        said = json.loads(getattr(error, "body", None) or "")["message"]
    return " ".join((f"{status} {said}" if status else str(error)).split())
