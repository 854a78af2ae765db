"""Runs on nodes of Slurm by srun, inside an allocation or outside."""

import math
import os
import re
from collections.abc import Mapping, Sequence

from kdoctor.probes.process.child import ChildEnd
from kdoctor_fleet.exclusion import Engine as Words
from kdoctor_fleet.launch.engine import ProgramEngine, first_problem, tied

_PATIENCE_S = 60
"""How long a node outside an allocation may be busy."""
_NOISE = re.compile(
    r"^(?:srun|slurmstepd[\w.-]*): (?:error: )?(?:[\w.-]+: tasks? \d+: (?:Exited with exit code|Terminated|Killed)"
    r"|.*\bCANCELLED AT\b|Job step aborted|Force Terminated|forcing job termination|launch/slurm: "
    r"|job \d+ (?:queued|has been allocated)).*\n?",
    re.MULTILINE,
)
"""Lines of srun that say no more than that the command failed."""

_NODE = re.compile(r"\bNodeName=(\S+)")
_ADDRESS = re.compile(r"\bNodeAddr=(\S+)")


class Slurm(ProgramEngine):
    """One ``srun`` for each node, so that a node that hangs does not hold up the others."""

    name = "slurm"
    words: Words = "slurm"
    program = "srun"
    package = "apt-get install slurm-client"

    def __init__(self, options: Sequence[str]) -> None:
        super().__init__(options)
        self._addresses: dict[str, str] | None = None

    def nodes(self, environ: Mapping[str, str]) -> str:
        """The nodes of the allocation in which this runs."""
        return environ.get("SLURM_JOB_NODELIST", "")

    def address(self, node: str) -> str:
        """NodeAddr of the node. The controller is asked once for all nodes."""
        if self._addresses is None:
            lines = self.ask("scontrol", "show", "nodes", "--oneliner").decode(errors="replace").splitlines()
            pairs = ((_NODE.search(line), _ADDRESS.search(line)) for line in lines)
            self._addresses = {name[1]: address[1] for name, address in pairs if name and address}
        return self._addresses.get(node, node)

    def argv(self, node: str, command: Sequence[str], deadline_s: float) -> list[str]:
        """A step of the allocation, or a job of one step."""
        minutes = f"--time={math.ceil(deadline_s / 60) + 1}"
        place = ("--overlap",) if os.environ.get("SLURM_JOB_ID") else (minutes, f"--immediate={_PATIENCE_S}")
        alone = ("--nodes=1", "--ntasks=1", f"--nodelist={node}", "--job-name=kdoctor")
        return [self.program, *alone, *place, *self.options, *tied(command, deadline_s)]

    def problem(self, end: ChildEnd) -> str:
        """The line that says most."""
        said = first_problem(_NOISE.sub("", end.stderr))
        return said if said or end.timed_out else first_problem(end.stderr)
