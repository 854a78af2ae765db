"""Runs on hosts by the system's OpenSSH, with the user's configuration, keys and known hosts."""

import shlex
from collections.abc import Mapping, Sequence

from kdoctor.probes.process.readers import Take
from kdoctor_fleet.exclusion import Engine as Words
from kdoctor_fleet.launch.engine import Ended, ProgramEngine, tied

_OF_SSH = 255
"""The exit code of ssh if there is no connection."""


class Ssh(ProgramEngine):
    """One ``ssh`` for each host. Nothing asks for a password or for an unknown host's key."""

    name = "ssh"
    words: Words = "hosts"
    program = "ssh"
    package = "apt-get install openssh-client"

    def nodes(self, environ: Mapping[str, str]) -> str:  # noqa: ARG002 - the interface of engines
        """None: ssh has no list of hosts."""
        return ""

    def address(self, node: str) -> str:
        """HostName of the host in the user's configuration, or the name itself. It does not connect."""
        lines = self.ask(self.program, "-G", *self.options, node).decode(errors="replace").splitlines()
        return next((line.removeprefix("hostname ") for line in lines if line.startswith("hostname ")), node)

    def run(self, node: str, command: Sequence[str], take: Take, deadline_s: float) -> Ended:
        """Run the command. If ssh itself failed, there is no exit code of the command."""
        ended = super().run(node, command, take, deadline_s)
        if ended.timed_out or ended.exit_code != _OF_SSH:
            return ended
        said = ended.problem or "no exit status: kdoctor was killed there, or the connection was lost"
        return Ended(exit_code=None, problem=said if said.startswith("ssh: ") else f"ssh: {said}")

    def argv(self, node: str, command: Sequence[str], deadline_s: float) -> list[str]:
        """The user's options come first, because the first value of an option counts."""
        default = (
            "-oBatchMode=yes", "-oConnectTimeout=30", "-oForwardAgent=no", "-oForwardX11=no",
            "-oServerAliveInterval=15", "-oServerAliveCountMax=4",
        )  # fmt: skip
        return [self.program, "-xT", *self.options, *default, node, shlex.join(tied(command, deadline_s))]
