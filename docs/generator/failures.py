"""The pages of the known failures."""

from collections.abc import Iterable, Mapping

from docs.generator.markdown import cell, escaped

from kdoctor.catalog.load import Catalog
from kdoctor.failures.advice import advise
from kdoctor.failures.known import KnownFailure, load_failures
from kdoctor.failures.pattern import readable

_FAILURES = """\
# Known failures

What goes wrong in multi-GPU Keras jobs, by the message that people meet. Each page has the cause, what to do, and the
checks that detect it. `kdoctor diagnose train.log` recognises these failures in logs, and orders them into causes and
consequences. `kdoctor explain "message"` finds one by its message.
"""
_KINDS = {
    "registration": "No GPU is used",
    "crash": "The job ends",
    "hang": "The job does nothing more",
    "silent": "Training is incorrect, without an error",
    "slow": "Training is slow",
    "harmless": "Harmless messages",
}


def failure_pages(catalog: Catalog, others: Mapping[str, str]) -> dict[str, str]:
    """The list of the known failures, and a page for each, by path on the site.

    Args:
        catalog: the checks and scenarios that detect them.
        others: the pages of extensions, path on the site to location. The rules of the linter have some.
    """
    known = load_failures().failure_modes
    pages = {f"failure-modes/{mode.id}.md": _failure_page(mode, catalog, others) for mode in known}
    return {"failure-modes.md": _list(known, catalog, others), **pages}


def _list(known: Iterable[KnownFailure], catalog: Catalog, others: Mapping[str, str]) -> str:
    """All known failures by kind, each with a link to its page."""
    lines = [_FAILURES]
    for kind, title in _KINDS.items():
        lines += [f"## {title}", "", "| Message | Failure | Detected by |", "| --- | --- | --- |"]
        lines += [
            f"| [{cell(mode.symptom)}](failure-modes/{mode.id}.md) | `{mode.id}` "
            f"| {_detected_by(mode, catalog, others)} |"
            for mode in known
            if mode.kind == kind
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _failure_page(mode: KnownFailure, catalog: Catalog, others: Mapping[str, str]) -> str:
    advice = advise(mode, catalog.checks, catalog.scenarios)
    lines = [f"# {escaped(mode.symptom)}", "", f"{_KINDS[mode.kind]} (`{mode.id}`).", "", mode.cause, ""]
    if mode.messages:
        lines += ["Messages:", "", "```text", *dict.fromkeys(map(readable, mode.messages)), "```", ""]
    for example in mode.examples:
        after = "" if example.source.startswith("measured") else "after "
        lines += [f"Example, {after}{_linked(example.source)}:", "", "```text", example.log.rstrip("\n"), "```", ""]
    lines += ["## What to do", ""] if mode.fix or advice.remedy else []
    for fix in mode.fix:
        versions = " and ".join(f"{package} `{which}`" for package, which in fix.when.items())
        lines += [f"{escaped(fix.do)}{f' (for {versions})' if versions else ''}", ""]
        lines += ["```sh", *fix.commands, "```", ""] if fix.commands else []
    if advice.remedy and not mode.fix:
        lines += [escaped(advice.remedy[:1].upper() + advice.remedy[1:]), ""]
    if mode.needs:
        lines += [f"Only with {', '.join(f'{name} `{which}`' for name, which in mode.needs.items())}.", ""]
    lines += [f"Detected by: {_detected_by(mode, catalog, others, '../')}.", ""]
    lines += ["```sh", *advice.commands, "```", ""] if advice.commands else []
    if mode.not_before_the_job:
        lines += [f"Why not before the job: {mode.not_before_the_job}", ""]
    if mode.reproduce:
        lines += ["To reproduce it:", "", "```sh", *(f"kdoctor explain --reproduce {name}" for name in mode.reproduce)]
        lines += ["```", ""]
    return "\n".join([*lines, f"Sources: {', '.join(map(_linked, mode.source))}"]) + "\n"


def _detected_by(mode: KnownFailure, catalog: Catalog, others: Mapping[str, str], up: str = "") -> str:
    checks = advise(mode, catalog.checks, catalog.scenarios).checks
    shown = [f"[`{name}`]({up}checks.md#{name.replace('.', '')})" for name in checks]
    for name in mode.lint:
        page = others.get(f"{name.replace('.', '/')}.md")
        shown.append(f"[`{name}`]({up}../{page})" if page else f"`{name}`")
    return ", ".join(shown) or "no check before the job"


def _linked(source: str) -> str:
    """The short name of an issue as a link; other text unchanged."""
    repository, _, number = source.partition("#")
    if number.isdecimal() and repository.count("/") == 1:
        return f"[{source}](https://github.com/{repository}/issues/{number})"
    return f"<{source}>" if source.startswith("https://") else source
