"""Fixes that bring nodes in line with the others. Values from other nodes are quoted, and names are checked."""

import re
from collections.abc import Callable, Iterable, Sequence

from kdoctor.commands.packages import Verb, pip_command
from kdoctor.commands.shell import set_variable
from kdoctor.commands.system import is_version, upgrade_driver
from kdoctor.model import Action, Remedy, Rollback
from kdoctor.text.lists import some
from kdoctor_fleet.checks.cluster._compare import ABSENT, Difference
from kdoctor_fleet.facts import FleetNode

_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BY_HAND = Rollback.irreversible("depends on what was changed on those nodes")


Fix = Callable[[str, Sequence[Difference], Sequence[FleetNode]], tuple[Remedy, Rollback]]
"""Makes the fix for these nodes, and what undoes it."""


def by_hand(summary: str, action: Action, look: str) -> Fix:
    """A fix that a person chooses after this command. ``{nodes}`` in the summary is replaced."""

    def fix(nodes: str, *_: object) -> tuple[Remedy, Rollback]:
        return Remedy(summary=summary.replace("{nodes}", nodes), action=action, look=(look,)), _BY_HAND

    return fix


def install_packages(
    nodes: str, differences: Sequence[Difference], members: Sequence[FleetNode]
) -> tuple[Remedy, Rollback]:
    """The packages of the other nodes, in the environments that the reports name."""
    tools: dict[tuple[str, bool], list[str]] = {}
    for node in members:
        has_pip = "pip" in node.sections.get("packages", {}) or not node.python
        tools.setdefault((node.python or "python", has_pip), []).append(node.name)
    where = "; ".join(f"{python} on {some(on)}" for (python, _), on in tools.items()) if len(tools) > 1 else ""
    commands = _pip([(item.name, item.others) for item in differences], tools)
    summary = f"On {nodes}, install the versions of the other nodes{where and f' ({where})'}, or use the same image:"
    remedy = Remedy.reinstall(summary, *commands)
    back = _pip([(item.name, item.value) for item in differences], tools)
    return remedy, Rollback.to("the packages before the fix", *back) if back else _BY_HAND


def _pip(pairs: Sequence[tuple[str, str]], tools: Iterable[tuple[str, bool]]) -> tuple[str, ...]:
    """The commands that install these versions, and remove what is absent, for each environment. uv is for no pip."""
    known = [(name, version) for name, version in pairs if _PACKAGE.fullmatch(name)]
    pins = [f"{name}=={version}" for name, version in known if version != ABSENT and _RELEASE.fullmatch(version)]
    gone = [name for name, version in known if version == ABSENT]
    commands: tuple[tuple[Verb, list[str]], ...] = (("install", pins), ("uninstall", gone))
    return tuple(
        pip_command("pip" if has_pip else "uv", python, verb, *names)
        for python, has_pip in tools
        for verb, names in commands
        if names
    )


def set_variables(nodes: str, differences: Sequence[Difference], *_: object) -> tuple[Remedy, Rollback]:
    """The variables of the other nodes."""
    named = [item for item in differences if _VARIABLE.fullmatch(item.name)]
    commands = tuple(_set(item.name, item.others) for item in named if "withheld" not in item.others)
    back = tuple(_set(item.name, item.value) for item in named if "withheld" not in item.value)
    summary = f"Set the variables in the job's script, which starts every node, or on {nodes} as on the others:"
    rollback = Rollback.to("the variables before the fix", *back) if back else _BY_HAND
    return Remedy.configure(summary, *commands), rollback


def _set(name: str, value: str) -> str:
    return set_variable(name, None if value == ABSENT else value)


def install_driver(nodes: str, differences: Sequence[Difference], *_: object) -> tuple[Remedy, Rollback]:
    """The driver of the other nodes. One that is installed but not loaded needs a reboot only."""
    wanted = next((item.others for item in differences if item.name == "version" and is_version(item.others)), None)
    commands = upgrade_driver(wanted) if wanted else ()
    summary = f"On {nodes}, install the driver of the other nodes (Ubuntu's packages), or reboot if it is installed:"
    look = ("cat /proc/driver/nvidia/version",)
    return Remedy.reboot(summary, *commands, look=look), _BY_HAND
