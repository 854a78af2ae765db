"""The way back of a Python environment: its interpreter, and what pip, uv and conda installed in it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdoctor.commands.shell import quoted, restores
from kdoctor.engine.report import DriftChange
from kdoctor.facts import canonical_name
from kdoctor.lock.document import Lock
from kdoctor.rollback.installers import HowMade, Tool
from kdoctor.rollback.model import RollbackStep


def pins(lock: Lock, leave_out: Iterable[str] = ()) -> list[str]:
    """Every distribution of the lock as ``name==version``, but those whose version is not known."""
    return [f"{name}=={version}" for name, version in _versions(lock, leave_out).items()]


def _versions(lock: Lock, leave_out: Iterable[str] = ()) -> dict[str, str]:
    left_out = {*leave_out}
    return {
        name: version
        for name, version in sorted(lock.facts.get("packages", {}).items())
        if version != "unknown" and name not in left_out
    }


def new_environment(
    changes: Sequence[DriftChange], packages: Sequence[DriftChange], lock: Lock, how: HowMade, by_hand: list[str]
) -> RollbackStep | None:
    """What cannot be put under an environment is made beside it, with all packages: another Python, or conda's own.

    Conda brings another Python back in place, as one of its packages.
    """
    version = next((change for change in changes if change.fact == "python.version"), None)
    recorded = lock.facts.get("python", {}).get("version", "")
    was_conda, is_conda = bool(lock.facts.get("conda")), how.environment == "conda"
    lost_conda = was_conda and not is_conda
    by_hand += [
        f"{change.fact} was {change.old} and is {change.new}: this environment is of another kind"
        for change in changes
        if change is not version and not (lost_conda and change.fact == "python.environment")
    ]
    if lost_conda:
        return _beside(changes, packages, lock, how, recorded)
    if version is None or version.old is None or was_conda:
        return None
    if _minor(version.old) == _minor(version.new or ""):
        by_hand.append(
            f"python.version was {version.old} and is {version.new}: the interpreter below {how.prefix or how.python} "
            "was replaced; reinstall that release if nothing else helps"
        )
        return None
    return _beside([version], packages, lock, how, version.old)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _beside(
    changes: Sequence[DriftChange], packages: Sequence[DriftChange], lock: Lock, how: HowMade, version: str
) -> RollbackStep:
    folder = f"{(how.prefix or 'environment').rstrip('/')}-python{_minor(version)}"
    python, place = shlex.quote(f"{folder}/bin/python"), shlex.quote(folder)
    conda = lock.facts.get("conda", {})
    wanted = _versions(lock, {"pip", *map(canonical_name, conda)})
    with_uv = how.common_tool == "uv" and not conda
    if conda:
        exact = quoted(f"{name}={release}" for name, release in sorted(conda.items()))
        made = f"conda create --yes --prefix {place} {exact}"
    else:
        made = f"uv venv --python {version} {place}" if with_uv else f"python{_minor(version)} -m venv {place}"
    installer = f"uv pip install --python {python}" if with_uv else f"{python} -m pip install"
    specs = quoted(f"{name}=={release}" for name, release in wanted.items())
    return RollbackStep(
        title=f"Make a new environment with Python {_minor(version)} beside this one, and run the job in it.",
        restores=restores([*changes, *packages]),
        commands=(made, *([f"{installer} --no-deps {specs}"] if wanted else [])),
        verify=(f"{python} -c {shlex.quote(_question(wanted, ()))}",),
    )


def bring_back(
    changes: Sequence[DriftChange], conda: Sequence[DriftChange], how: HowMade, by_hand: list[str]
) -> Iterator[RollbackStep]:
    """The distributions that drifted, each by the tool that installed it; conda's own record is exact for conda's."""
    if conda:
        yield _by_conda(conda, how)
    condas = {canonical_name(change.fact.removeprefix("conda.")) for change in conda}
    by_tool: dict[Tool, list[DriftChange]] = {}
    for change in changes:
        name = change.fact.removeprefix("packages.")
        tool = how.tool(name)
        if conda and (tool == "conda" or name in condas):
            continue  # it comes back with conda's own package
        if change.old == "unknown":
            by_hand.append(f"{name} is {change.new}, and the lock does not know which version it was")
        else:
            by_tool.setdefault(tool, []).append(change)
    order: tuple[Tool, ...] = ("conda", "uv", "pip")
    for tool in order:
        if tool in by_tool:
            yield _packages_step(tool, by_tool[tool], how)


def _by_conda(changes: Sequence[DriftChange], how: HowMade) -> RollbackStep:
    """By name, version and build, as conda recorded them; dependencies are left alone, for all are recorded."""
    prefix = f"--prefix {shlex.quote(how.prefix)}"
    wanted = {change.fact.removeprefix("conda."): change.old for change in changes if change.old is not None}
    gone = sorted(change.fact.removeprefix("conda.") for change in changes if change.old is None)
    specs = quoted(f"{name}={version}" for name, version in sorted(wanted.items()))
    files = [f"{name}-{(version or '').replace('=', '-')}.json" for name, version in sorted(wanted.items())]
    verify = [f"test -f {shlex.quote(f'{how.prefix}/conda-meta/{file}')}" for file in files]
    verify += [
        f'! ls {shlex.quote(f"{how.prefix}/conda-meta")} | grep -E "^{name}-[^-]+-[^-]+\\.json$"' for name in gone
    ]
    return RollbackStep(
        title="Bring back the recorded packages with conda.",
        restores=restores(changes),
        commands=(
            *([f"conda install --yes --no-deps {prefix} {specs}"] if wanted else []),
            *([f"conda remove --yes --force {prefix} {quoted(gone)}"] if gone else []),
        ),
        verify=tuple(verify),
    )


def _packages_step(tool: Tool, changes: Sequence[DriftChange], how: HowMade) -> RollbackStep:
    """Install the recorded versions, then take away what came since.

    Dependencies are left alone: the lock lists every distribution, so nothing has to be resolved.
    """
    names = [change.fact.removeprefix("packages.") for change in changes]
    wanted = {name: change.old for name, change in zip(names, changes, strict=True) if change.old is not None}
    gone = sorted(name for name, change in zip(names, changes, strict=True) if change.old is None)
    python = shlex.quote(how.python)
    if tool == "conda":
        prefix = f"--prefix {shlex.quote(how.prefix)}"
        specs = quoted(f"{name}={version}" for name, version in sorted(wanted.items()))
        install, remove = f"conda install --yes {prefix} {specs}", f"conda remove --yes {prefix} {quoted(gone)}"
    else:
        specs = quoted(f"{name}=={version}" for name, version in sorted(wanted.items()))
        if tool == "uv":
            install = f"uv pip install --python {python} --no-deps {specs}"
            remove = f"uv pip uninstall --python {python} {quoted(gone)}"
        else:
            install = f"{python} -m pip install --no-deps {specs}"
            remove = f"{python} -m pip uninstall --yes {quoted(gone)}"
    return RollbackStep(
        title=f"Bring back the recorded packages with {tool}.",
        restores=restores(changes),
        commands=(*([install] if wanted else []), *([remove] if gone else [])),
        verify=(f"{python} -c {shlex.quote(_question(wanted, gone))}",),
    )


def _question(wanted: Mapping[str, str | None], gone: Iterable[str]) -> str:
    """A program that exits with 0 where exactly these versions are installed, and says what is not so."""
    return "; ".join((
        "import importlib.metadata as m",
        f"wanted, gone = {json.dumps(wanted, sort_keys=True)}, {json.dumps(sorted(gone))}",
        'have = {d.metadata["Name"].lower().replace("_", "-").replace(".", "-"): d.version for d in m.distributions()}',
        'wrong = [f"{n} is {have.get(n)}, not {v}" for n, v in wanted.items() if have.get(n) != v]',
        'wrong += [f"{n} is still installed" for n in gone if n in have]',
        'raise SystemExit("; ".join(wrong) or 0)',
    ))  # fmt: skip
