"""Collects the reports of pods that a manifest of ``kdoctor fleet manifest`` started, by kubectl."""

from collections.abc import Sequence

from kdoctor.probes.process.readers import Take
from kdoctor_fleet.launch.engine import Ended, ProgramEngine
from kdoctor_fleet.launch.pods import Pods, selector_of


class Kubectl(Pods, ProgramEngine):
    """The user's kubectl, with its configuration."""

    program = "kubectl"
    package = "python -m pip install 'keras-doctor[kubernetes]', or https://kubernetes.io/docs/tasks/tools/"

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
