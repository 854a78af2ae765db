"""The engines by name."""

from collections.abc import Callable, Mapping, Sequence

from kdoctor_fleet.launch.engine import Engine
from kdoctor_fleet.launch.kubernetes import kubernetes
from kdoctor_fleet.launch.ray import Ray
from kdoctor_fleet.launch.slurm import Slurm
from kdoctor_fleet.launch.ssh import Ssh

ENGINES: Mapping[str, Callable[[Sequence[str]], Engine]] = {
    "kubernetes": kubernetes,
    "ray": Ray,
    "slurm": Slurm,
    "ssh": Ssh,
}
"""Each takes the engine's options."""
