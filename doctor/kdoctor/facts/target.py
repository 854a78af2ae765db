"""The examined Python interpreter."""

from typing import ClassVar, Literal

from kdoctor.facts.base import FactGroup
from kdoctor.records import record

EnvironmentKind = Literal["venv", "conda", "system"]


@record
class Target(FactGroup):
    """The interpreter whose environment the job uses, and how it was chosen."""

    group: ClassVar[str] = "target"

    executable: str
    """Path of the interpreter, without resolving links."""
    chosen_by: str
    """Which environment it is and why, for the user: ``--python``, ``the active virtual environment``, ``.venv of the
    project /opt/job``, ``kdoctor's own: no other environment was found``."""
    stand_in: bool = False
    """It is kdoctor's own environment, without TensorFlow, Keras or JAX, and the user did not name it. The environment
    of the job is another one, so no fix may change this one."""
    version: str
    """Full version, for example ``3.11.7``."""
    implementation: str
    """``sys.implementation.name``: ``cpython``, ``pypy``, ..."""
    environment: EnvironmentKind
    """The kind of environment that the interpreter belongs to."""
    prefix: str
    """``sys.prefix``: the environment's folder."""
    base_prefix: str
    """``sys.base_prefix``: the folder of the Python that the environment was created from."""
    platform: str
    """``sysconfig.get_platform()``, for example ``linux-x86_64``."""
    externally_managed: bool = False
    """Whether pip refuses to change its packages, which are the distribution's (PEP 668)."""
    read_only: bool = False
    """Whether this user cannot write to its packages."""
