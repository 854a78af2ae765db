"""Write the pages that are generated from the code: ``make docs``. A test fails when one is out of date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

from kdoctor.check import Check
from kdoctor.cli import app
from kdoctor.engine.catalog import Catalog, load_catalog
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.view import asks, code_range, nccl_words, python_range
from kdoctor.model import FAMILIES
from kdoctor.report.phrases import FAMILY_TITLES
from kdoctor_lint.reference import page as rules_page

DOCS = Path(__file__).parent
_NOTICE = "<!-- Written by `make docs` from the checks themselves; change them, not this page. -->"


def checks_page(catalog: Catalog) -> str:
    """The reference of checks."""
    lines = ["# Checks", "", _NOTICE, ""]
    lines += ["Severity: *error* means do not start the job, *warning* start knowingly. A checklist may change it.", ""]
    for family in FAMILIES:
        checks = [check for check in catalog.checks.values() if check.family == family]
        if checks:
            lines += [f"## {FAMILY_TITLES[family]}", ""]
            lines += [line for check in checks for line in _check(check)]
    return "\n".join(lines).rstrip() + "\n"


def _check(check: Check) -> list[str]:
    lines = [f"### {check.id}", "", f"**{check.title}** ({check.severity.value})", "", check.why, ""]
    lines += [f"What to do: {check.remedy}", ""]
    if check.failure_modes:
        modes = ", ".join(f"[`{mode}`](failure-modes.md#{mode})" for mode in check.failure_modes)
        lines += [f"Known failures that it catches: {modes}.", ""]
    if check.requires:
        lines += [f"Not judged where one of these failed: {', '.join(f'`{item}`' for item in check.requires)}.", ""]
    if check.needs_gpus:
        lines += ["Skipped under a checklist that expects no GPUs.", ""]
    if check.scenario:
        lines += [f"Judges the scenario `{check.scenario}`.", ""]
    if check.parameters:
        shown = (f"`{parameter.name}` (default `{parameter.default!r}`)" for parameter in check.parameters.values())
        lines += [f"Parameters: {', '.join(shown)}.", ""]
    return [*lines, f"Sources: {', '.join(f'<{source}>' for source in check.sources)}", ""]


_MATRIX = """\
# The version matrix

<!-- Written by `make docs` from the matrix itself; change that, not this page. -->

`kdoctor matrix` says which TensorFlow runs on a driver, GPUs and a Python, why each other one does not, and how to
install the newest that does. `kdoctor matrix --tensorflow 2.19` says what a release needs. It imports nothing of
TensorFlow and needs no GPU. Exit code 0: it answered, whatever the answer is; 2: it could not be asked so.

*runs* means that nothing the matrix knows is against it. What is not known (a GPU that it has no row for, a driver that
nobody named, another platform) is *unknown*, and a release without a row is told to be not known.

How it judges: a GPU runs a build by machine code of its own major architecture, or by PTX, which the driver must
compile; for that the driver must be as new as the toolkit that made the PTX, which minor-version compatibility does not
cover. Of several GPUs every one must run it. The install command carries the pins that keep a range from resolving to
a known-bad combination.

## A matrix of your own

`--matrix FILE`, or the variable `KDOCTOR_MATRIX`, names a file of the same form as the shipped one
(`checklists/kdoctor_checklists/matrices/version-matrix.yaml`). With `extends: shipped` its rows are added, and a row
with the same key takes the place of the shipped one, whole; with `extends: nothing` (or without the key) it stands
alone and must have every section. Keys: `tensorflow` by `version`, `cuda_majors` by `major`, `cuda_releases` by
`release`, `cudnn` by `cuda`, `versions` and `capabilities`, `gpus` by `capability`, `libraries` by what they are for,
`keras` by `versions`, `known_bad` by `id` and `when`. Versions are text: put them in quotes.

    schema: kdoctor/version-matrix/v1
    extends: shipped
    updated: "2026-12-01"
    platform: linux-x86_64
    tensorflow:
    - version: "2.21.0+ours.1"
      same_as: "2.21.0"          # every key that is not here
      cubins: [80, 90, 100]
      ptx: [100]
      source: our build farm

## The releases
"""


def matrix_page(_: Catalog) -> str:
    """The version matrix: how it is used, and its releases."""
    matrix = load_matrix(environ={})
    lines = [_MATRIX, f"As of {matrix.updated}, for {matrix.platform}.", ""]
    heads = ("TensorFlow", "Python", "CUDA", "cuDNN", "driver from", "machine code", "PTX", "NCCL", "glibc", "asks for")
    lines += [f"| {' | '.join(heads)} | held against the wheel |", "|" + "---|" * (len(heads) + 1)]
    for row in reversed(matrix.releases):
        wants = ", ".join(f"`{line}`" for line in asks(row, ["keras", "numpy"]))
        driver = matrix.oldest_driver(row.cuda) or ""
        cells = (row.version, python_range(row), row.cuda, row.cudnn or "", driver, code_range(row))
        rest = (f"{row.ptx[0] / 10:.1f}", nccl_words(row), row.glibc, wants, row.verified or "")
        lines.append(f"| {' | '.join((*cells, *rest))} |")
    lines += ["", "## Known-bad combinations", ""]
    lines += ["| failure | when | effect | ended by | fix |", "|---|---|---|---|---|"]
    for bad in matrix.known_bad:
        when = ", ".join(f"{name} `{spec}`" for name, spec in bad.when.items()) + (f"; {bad.job}" if bad.job else "")
        ended = ", ".join(f"{name} `{spec}`" for name, spec in bad.ended_by.items()) or "not known"
        lines.append(f"| {bad.id} | {when} | {bad.effect} | {ended} | {bad.fix} |")
    return "\n".join(lines) + "\n"


def lint_page(catalog: Catalog) -> str:
    """The rules of the linter, which are no checks and in no catalog."""
    del catalog
    return rules_page()


def failure_modes() -> list[dict[str, Any]]:
    """The project's list of known failures."""
    text = resources.files("kdoctor_checklists.failures").joinpath("failure-modes.yaml").read_text(encoding="utf-8")
    modes: list[dict[str, Any]] = yaml.safe_load(text)["failure_modes"]
    return modes


def failure_modes_page(catalog: Catalog) -> str:
    """Each known failure, and what catches it."""
    modes = failure_modes()
    lines = ["# Known failures", "", _NOTICE, ""]
    introduction = (
        f"The {len(modes)} failures of multi-GPU Keras jobs that kdoctor knows: what people see, why, and which check "
        "catches it before the job starts. The list is `kdoctor_checklists/failures/failure-modes.yaml`; each check "
        "names the failures that it catches in its own documentation (`kdoctor explain ID`)."
    )
    lines += [
        introduction,
        "",
        "| Failure | Kind | Caught by |",
        "| --- | --- | --- |",
        *(f"| [`{mode['id']}`](#{mode['id']}) | {mode['kind']} | {_caught_by(mode, catalog)} |" for mode in modes),
        "",
    ]
    for mode in modes:
        lines += [f"## {mode['id']}", "", f"What people see: {mode['symptom']}", "", f"Cause: {mode['cause']}", ""]
        lines += [f"Caught by: {_caught_by(mode, catalog)}.", ""]
        if why := mode.get("not_before_the_job"):
            lines += [f"Why no check before the job can: {why}", ""]
        lines += [f"Sources: {', '.join(_linked(source) for source in mode['source'])}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _caught_by(mode: Mapping[str, Any], catalog: Catalog) -> str:
    checks = [check.id for check in catalog.checks.values() if mode["id"] in check.failure_modes]
    linked = [f"[`{name}`](checks.md#{name.replace('.', '')})" for name in checks]
    linked += [f"[`{name}`](lint.md#{name.replace('.', '')})" for name in mode.get("lint", ())]
    return ", ".join(linked) or "nothing before the job"


def _linked(source: str) -> str:
    """An issue's short name as a link; other words as they are."""
    repository, _, number = source.partition("#")
    if number.isdecimal() and repository.count("/") == 1:
        return f"[{source}](https://github.com/{repository}/issues/{number})"
    return f"<{source}>" if source.startswith("https://") else source


def cli_page(_: Catalog) -> str:
    """The help of each command and subcommand."""
    notice = "<!-- Written by `make docs` from the commands; change their help, not this page. -->"
    lines = ["# Command line", "", notice, "", "The output of `--help` for each command, 80 columns wide.", ""]
    for path in _command_paths(get_command(app), ()):
        shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*path, "--help"], prog_name="kdoctor").output
        text = "\n".join(line.rstrip() for line in Text.from_ansi(shown).plain.splitlines()).strip("\n")
        lines += [f"## {' '.join(('kdoctor', *path))}", "", "```text", text, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _command_paths(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if hasattr(command, "list_commands"):
        context = command.make_context(path[-1] if path else "kdoctor", [], resilient_parsing=True)
        for name in command.list_commands(context):
            _, found, _ = command.resolve_command(context, [name])
            yield from _command_paths(found, (*path, name))


PAGES = {
    "checks.md": checks_page,
    "failure-modes.md": failure_modes_page,
    "lint.md": lint_page,
    "reference/cli.md": cli_page,
    "version-matrix.md": matrix_page,
}
"""File below docs/ to the function that writes it."""


def main() -> None:
    """Write every page."""
    catalog = load_catalog()
    for name, write in PAGES.items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(write(catalog), encoding="utf-8")


if __name__ == "__main__":
    main()
