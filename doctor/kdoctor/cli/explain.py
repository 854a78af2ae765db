"""``kdoctor explain``."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from importlib.resources import files
from typing import Annotated

import typer
from packaging.version import VERSION_PATTERN, parse

from kdoctor.catalog.explanations import explanations
from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.check import Check, Parameter
from kdoctor.checklist.load import load_checklist, read_text
from kdoctor.cli.completion import beginning_with
from kdoctor.cli.options import PluginOption
from kdoctor.cli.stderr import show, standard_input
from kdoctor.commands.again import in_same_place
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.failures.advice import advise
from kdoctor.failures.known import Fix, KnownFailure, KnownFailures, load_failures, load_reproductions, source_link
from kdoctor.failures.match import Match, find_matches, near_misses
from kdoctor.failures.tables import described_in, spelled_out
from kdoctor.history.location import history_file
from kdoctor.history.read import saying
from kdoctor.history.store import opened
from kdoctor.matrix.keras import HARMLESS, VERBS, features_of
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.model import KnownBad, VersionMatrix
from kdoctor.matrix.truth import by_scenario, features_of_checks, spans, titles
from kdoctor.records import record
from kdoctor.report.phrases import family_title
from kdoctor.smoke.scenario import Scenario
from kdoctor.text.lists import counted, some
from kdoctor.text.wrap import WIDTH, shorten, wrap

_INDENT = "  "
_LONGEST_INPUT = 10_000_000
"""Bytes that are read from stdin: more than a log of a day."""
_MOST_WORDS = 5
"""Words of a name, at most."""
_LEAST_WORDS = 3
"""Words of a line of a report, at least."""
_MOST_NAMED = 12
"""Names that are shown of those that mention a word."""
_SHOWN = 5
"""Matches that are shown; a long log may have many."""


@record
class Known:
    """Everything that there is to explain."""

    plugins: tuple[str, ...] = ()
    failures: KnownFailures = field(default_factory=load_failures)

    @cached_property
    def catalog(self) -> Catalog:
        """All checks and scenarios. A message that is not known needs none."""
        return load_catalog(self.plugins)

    @cached_property
    def matrix(self) -> VersionMatrix:
        """The version matrix. Reading it takes as long as all else, and most names are not in it."""
        return load_matrix(environ=os.environ)

    @cached_property
    def terms(self) -> dict[str, str]:
        """The words that kdoctor uses, with what they mean."""
        text = files("kdoctor.catalog").joinpath("terms.md").read_text(encoding="utf-8")
        entries = re.findall(r"^- (\*\*.+?\*\*): (.+(?:\n  .+)*)$", text, re.MULTILINE)
        return {
            name: " ".join(meaning.split()) for names, meaning in entries for name in re.findall(r"[a-z -]{3,}", names)
        }

    @property
    def names(self) -> list[str]:
        """All names."""
        catalog, features = self.catalog, [name.partition("/")[2] for name in self.matrix.features]
        own = [*catalog.families, *catalog.checks, *catalog.scenarios, *catalog.checklists, *self.failures.by_id]
        own += [*features, *(row.id for row in self.matrix.known_bad), *self.terms]
        return [*own, *(name for plugin in explanations() for name in plugin.names())]


def _reproduction(name: str, words: list[str] | None) -> str:
    if words:
        raise UsageError("--reproduce takes the place of a name or text to explain")
    scripts = load_reproductions()
    if name not in scripts:
        hint = f"Choose one of: {', '.join(scripts)}"
        raise UsageError(f"--reproduce {name}: no such script{did_you_mean(name, scripts)}", hint=hint)
    return scripts[name]


def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID|TEXT",
            autocompletion=lambda incomplete: beginning_with(incomplete, Known().names),
            help="A check, family, scenario, checklist, lint rule or known failure; or an error message (- for stdin).",
        ),
    ] = None,
    *,
    reproduce: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=lambda incomplete: beginning_with(incomplete, list(load_reproductions())),
            help="Print a script that reproduces a defect of Keras, for a report to its developers.",
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Explain a check, lint rule, known failure or error message.

    For an error message it names the known failures that print it, and the checks that detect them. For the logs of a
    job, use kdoctor diagnose. Exit codes: 0 explained; 1 no known failure has that message; 2 usage error.
    """
    if reproduce is not None:
        show(_reproduction(reproduce, words))
        return
    if not words:
        raise UsageError("no name or text to explain", hint="To list the names: kdoctor list")
    known = Known(plugins=tuple(plugin or ()))
    if words == ["-"]:
        explain_text(standard_input().read(_LONGEST_INPUT).decode("utf-8", "replace"), known)
        return
    name = re.sub(r" \(([^()]+)\)$", r" \1", spelled_out(" ".join(words)))  # multi worker (fit), as reports write it
    said = name
    if name != (low := name.lower()) and (_is_name(low) or _is_phrase(low)) and not _is_code(name):
        name = name if find_matches(name, known.failures) else low
    text = explain_name(name, known) if name == name.lower() or " " not in name else ""  # a message has capitals
    by_words = _by_words(known) if _is_phrase(name) and not text else {}
    if meant := by_words.get(_words(name)):
        text = explain_name(meant, known)
    near = did_you_mean(_words(name), by_words)
    if text or (text := _line_of_report(" ".join(words), known)):
        show(text)
    elif find_matches(name, known.failures) or not (_is_name(name) or _is_phrase(name)):
        explain_text(name, known)
    elif name and (names := _mentioning(name, known)):
        lines = [shorten(f"{_INDENT}{one}: {title}", WIDTH) for one, title in [*names.items()][:_MOST_NAMED]]
        rest = len(names) - len(lines)
        lines += [f"{_INDENT}and {rest} more"] if rest else []
        first = [*wrap(f"Nothing is called {' '.join(words)!r}. These mention it:"), ""]
        show("\n".join([*first, *lines, "", f"To read the first one: kdoctor explain {next(iter(names))}", ""]))
        raise typer.Exit(1)
    elif not (_is_name(name) or near) or (said != name and " " in name):  # a message begins with a capital
        explain_text(said, known)
    else:
        begin = [one for one in sorted(known.names) if _is_code(name) and one.startswith(name)]
        near = near or (f"; there are {some(begin, _SHOWN)}" if begin else did_you_mean(name, known.names))
        raise UsageError(
            f"nothing is called {' '.join(words)!r}{near}", hint="To list them (a plugin's with --plugin): kdoctor list"
        )


def _line_of_report(text: str, known: Known) -> str:
    """Everything about several names, or about the check that a line of a report has, or that said it in a new run."""
    if all(texts := [explain_name(name, known) for name in text.split()]):
        return "\n".join(texts)
    line = re.sub(r"^(\[.\] \w+ +|[^\w\s] )|( ?\.\.\.)?( \([a-z.-]+\))?$", "", " ".join(text.split()))
    if len(line.split()) < _LEAST_WORDS:
        return ""
    named = [word for word in re.findall(r"[a-z]+\.[a-z-]+", text) if word in known.catalog.checks]
    if not named:
        with suppress(UsageError), opened(history_file(os.environ), create=False) as connection:
            named = [saying(connection, line)]
    return explain_check(known.catalog.checks[named[0]], known) if named and named[0] in known.catalog.checks else ""


def _mentioning(word: str, known: Known) -> dict[str, str]:
    """Titles of the checks, and symptoms of the known failures, whose text has that word, by their ids.

    Those whose id begins with it come first, then those that have it in the title or in the id.
    """
    texts = {check.id: (check.title, check.why, check.remedy) for check in known.catalog.checks.values()}
    for failure in known.failures.by_id.values():
        texts[failure.id] = (failure.symptom, failure.cause, " ".join(fix.do for fix in failure.fix))
    wanted = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    found = [(name, text[0]) for name, text in texts.items() if wanted.search(" ".join(text))]
    said = {name: f"{name} {title}".replace("_", " ") for name, title in found}
    return dict(sorted(found, key=lambda pair: (not wanted.match(said[pair[0]]), not wanted.search(said[pair[0]]))))


def _words(name: str) -> str:
    return " ".join(re.split("[^a-z0-9]+", name.lower())).strip()


def _by_words(known: Known) -> dict[str, str]:
    """Every name by its words, with and without its family: ``same bits`` for ``smoke.same-bits``."""
    named = {name: name for name in known.names}
    named |= {row.title: feature for feature, row in known.matrix.features.items()}
    # Of two checks with the same words, the first one that the catalog lists is meant.
    short = {_words(name.partition(".")[2]): meant for name, meant in reversed(named.items()) if "." in name}
    return {**short, **{_words(name): meant for name, meant in named.items()}}


def _is_phrase(text: str) -> bool:
    """Whether a text may be the words of a name rather than a message."""
    return text == text.lower() and 1 < len(text.split()) <= _MOST_WORDS and not re.search("[^a-z0-9 :._-]", text)


def _is_name(text: str) -> bool:
    """Whether a text may be a misspelt name rather than a message."""
    return _is_code(text) or (text == text.lower() and all(letter.isalnum() or letter in "._-" for letter in text))


def _is_code(text: str) -> bool:
    """Whether it has the form of a lint rule's code or its beginning: ``KD101``, ``KD``."""
    return bool(re.fullmatch("[A-Z]{2,4}[0-9]*|[A-Z][0-9]+", text))


def explain_name(name: str, known: Known) -> str:
    """Everything with that name; empty if there is nothing."""
    catalog, failures = known.catalog, known.failures
    checks = [check for check in (name, f"smoke.{name}") if check in catalog.checks]
    terms = [term for term in (name, name.removesuffix("s")) if term in known.terms]  # also in the plural
    parts = [_term(term, known) for term in terms[:1]]
    parts += [explain_check(catalog.checks[check], known) for check in checks[:1]]
    parts += [explain_scenario(catalog.scenarios[name])] if name in catalog.scenarios else []
    parts += [explain_family(name, catalog)] if name in catalog.families else []
    parts += [explain_checklist(name, catalog)] if name in catalog.checklists else []
    parts += [explain_failure(failures.by_id[name], catalog)] if name in failures.by_id else []
    if name.islower() and name not in catalog.checks and name not in failures.by_id:  # as all names of the matrix are
        parts += _in_matrix(name, known.matrix)
    return "\n".join(parts or (text for plugin in explanations() if (text := plugin.explain(name))))


def _term(name: str, known: Known) -> str:
    """What a word means, and a few of the checks that are named after it: a title may have it in another meaning."""
    checks = [check for check in known.catalog.checks if re.search(rf"\b{name}s?\b", check.replace("-", " "))]
    about = ["", *wrap(f"Checks: {', '.join(checks[:_SHOWN])}")] if checks else []
    return "\n".join([name, *_paragraph(known.terms[name]), *about, ""])


def _in_matrix(name: str, matrix: VersionMatrix) -> Iterator[str]:
    """The combinations of versions and the features with that name."""
    yield from (explain_combination(row, matrix) for row in matrix.known_bad if row.id == name)
    for feature, row in matrix.features.items():
        if name in _names_of(feature, row.title):
            yield explain_feature(feature, matrix)
    release = re.fullmatch(rf"(keras|tf[-_]keras)(?:(?:[ ]|==)({VERSION_PATTERN}))?", name, re.VERBOSE)
    if release:
        package = release[1].replace("-", "_")
        measured = {parse(one) for row in matrix.keras_features if row.package == package for one in row.releases}
        newest = max(measured, key=lambda one: (not one.is_prerelease, one))
        yield explain_keras(package, release[2] or str(newest), matrix)


def _names_of(feature: str, title: str) -> tuple[str, ...]:
    """What a feature is called: its id, and its title in reports, each also without the name of its scenario."""
    return feature, feature.partition("/")[2], title, title.partition(": ")[2] or title


def explain_text(text: str, known: Known) -> None:
    """Print the known failures with a message in the text, or end with 1.

    Raises:
        UsageError: the text is empty.
    """
    if not text.strip():
        raise UsageError("no text to explain", hint="Example: python train.py 2>&1 | kdoctor explain -")
    matches = find_matches(text, known.failures)
    if not matches:
        show(_no_match(near_misses(text, known.failures)))
        raise typer.Exit(1)
    lines = [f"{counted(len(matches), 'known problem')} with a message in this text:", ""]
    if len(matches) > 1:
        catalog, plugins = known.catalog, explanations()
        causes = [name for plugin in plugins for name in plugin.causes(text, catalog.checks, catalog.scenarios)]
        matches = tuple(sorted(matches, key=lambda match: [*causes, match.known.id].index(match.known.id)))
        lines[0] = f"{lines[0][:-1]}, the most specific first:"
    for match in matches[:_SHOWN]:
        row = described_in(text, match.known)
        explained = match.known if row is None else match.known.model_copy(update={"cause": row.cause})
        lines += [_known(explained, known.catalog, match.message if row is None else row.title), ""]
    if len(matches) > _SHOWN:
        lines += [f"{counted(len(matches) - _SHOWN, 'more is', 'more are')} not shown.", ""]
    show("\n".join(lines[:-1]) + "\n")


def _no_match(near: tuple[Match, ...]) -> str:
    lines = ["No known failure has that message."]
    if near:
        lines += ["", "Similar messages:"]
    for match in near:
        command = f"{_INDENT * 2}kdoctor explain {match.known.id}"
        lines += [*wrap(match.message, first=f"{_INDENT}- ", rest=_INDENT * 2), command]
    return "\n".join([*lines, "", "To look for the cause on this machine: kdoctor check", ""])


def explain_failure(failure: KnownFailure, catalog: Catalog) -> str:
    """A known failure: symptom, cause, and the checks that detect it."""
    return _known(failure, catalog, failure.symptom) + "\n"


def _known(known: KnownFailure, catalog: Catalog, message: str) -> str:
    advice = advise(known, catalog.checks, catalog.scenarios)
    fixes = [line for fix in known.fix for line in _fix(fix)]
    rules = {name for plugin in explanations() for name in plugin.names()} & set(advice.rules) if advice.rules else ()
    sections = [
        ("Message", _paragraph(message)),
        ("Cause", _paragraph(known.cause)),
        ("Why not before the job", _paragraph(known.not_before_the_job or "")),
        ("Fix", fixes or _paragraph(advice.remedy)),
        ("Detected by", _paragraph(", ".join((*advice.checks, *sorted(rules))))),
        ("Reproduce it", _reproduce(known.reproduce)),
        ("Check for it", [f"{_INDENT}{command}" for command in advice.commands]),
        ("Source", [f"{_INDENT}{source_link(source)}" for source in known.source]),
    ]
    return _sections("\n".join(wrap(f"{known.id} ({known.kind})")), "", sections).rstrip("\n")


def _fix(fix: Fix) -> list[str]:
    """What to do, for which versions, and its commands."""
    versions = " and ".join(f"{package} {which}" for package, which in fix.when.items())
    text = f"{fix.do} (for {versions})" if versions else fix.do
    return [*_paragraph(text), *(_INDENT * 3 + in_same_place(command, "kdoctor explain") for command in fix.commands)]


def explain_combination(row: KnownBad, matrix: VersionMatrix) -> str:
    """A combination of versions that the matrix knows to fail."""
    versions = ", ".join(f"{name} {spec}" for name, spec in row.when.items())
    sections = [
        ("Message", _paragraph(row.symptom)),
        ("Versions", _paragraph(f"{versions}{f', with {row.job}' if row.job else ''}")),
        ("Fix", _paragraph(row.fix)),
        ("Check for it", [f"{_INDENT}kdoctor matrix"]),
        ("Source", [line for source in row.source for line in _paragraph(matrix.citation(source) or source)]),
    ]
    return _sections(f"{row.id} ({row.effect})", "", sections)


def explain_feature(feature: str, matrix: VersionMatrix) -> str:
    """What the measured releases of Keras do with a feature."""
    row = matrix.features[feature]
    sections = [("Measured", _measured([feature], matrix)), ("Checks", _paragraph(", ".join(row.checks)))]
    return _sections(f"{feature}: {row.title}", "A feature of jobs, on several replicas.", sections)


def explain_keras(package: str, version: str, matrix: VersionMatrix) -> str:
    """What a release of Keras does on several replicas, with all features that were measured."""
    known = [matrix.keras_feature(feature, package, version) for feature in features_of(matrix.keras_features, package)]
    sections = [("On several replicas", _paragraph(known[0].basis if known else "no release was measured"))]
    for result in (*sorted(VERBS, key=HARMLESS.__contains__), None):  # defects first
        named = titles(matrix, [item.feature for item in known if item.result == result])
        verb = VERBS[result] if result else "not known"
        sections.append((verb.capitalize(), _paragraph(by_scenario(named)) if named else []))
    if not any(item.result for item in known):
        return _sections(f"{package} {version}", known[0].basis if known else "no release was measured", [])
    return _sections(f"{package} {version}", "To read about one of them: kdoctor explain NAME", sections)


def _measured(features: list[str], matrix: VersionMatrix) -> list[str]:
    """A paragraph for each feature and each span of releases that do the same."""
    lines: list[str] = []
    for feature in features:
        lines += _paragraph(matrix.features[feature].title) if len(features) > 1 else []
        for span in spans(matrix, feature):
            lines += wrap(f"{span.package} {span.text}", first=_INDENT * 2, rest=_INDENT * 4)
    return lines


def explain_family(family: str, catalog: Catalog) -> str:
    """The checks of a family."""
    checks = [check for check in catalog.checks.values() if check.family == family]
    lines = [f"{family}: {family_title(family)} ({counted(len(checks), 'check')})", ""]
    for check in checks:
        lines += [f"{_INDENT}{check.id} ({check.severity.value})", *wrap(check.title, first=_INDENT * 3)]
    lines += ["", f"To run only these: kdoctor check --select {family}", "Details: kdoctor explain ID"]
    return "\n".join([*lines, ""])


def explain_checklist(name: str, catalog: Catalog) -> str:
    """What a shipped checklist is for, and what it contains."""
    checklist = load_checklist(name, catalog)
    comments = [line for line in read_text(name, catalog).partition("\n\n")[0].splitlines() if line.startswith("#")]
    stated = ", ".join(sorted(checklist.assumptions.stated())) or "no GPUs"
    sections = [
        ("Contains", _paragraph(f"{counted(len(checklist.entries), 'check')}; assumptions: {stated}")),
        ("Smoke trainings", [f"{_INDENT}{entry.scenario.id} ({entry.scenario.kind})" for entry in checklist.scenarios]),
        ("To use it", [f"{_INDENT}kdoctor check --checklist {name}"]),
        ("To print it", [f"{_INDENT}kdoctor checklist show {name} --resolved"]),
    ]
    about = " ".join(comment.lstrip("# ") for comment in comments)
    return _sections(f"Checklist {name}, version {checklist.version}", about, sections)


def explain_check(check: Check, known: Known) -> str:
    """Everything that its author says about a check."""
    failures = known.failures.by_id
    scripts = [name for mode in check.failure_modes if mode in failures for name in failures[mode].reproduce]
    # Only what is trained is measured.
    measured = features_of_checks(known.matrix, [check.id]) if check.scenario else []
    sections = [
        ("Why it matters", _paragraph(check.why)),
        ("Fix", _paragraph(check.remedy)),
        ("Measured", _measured(measured, known.matrix) if measured else []),
        ("Source", [f"{_INDENT}{source}" for source in check.sources]),
        ("Detected failures", _paragraph(", ".join(check.failure_modes))),
        ("Reproduce it", _reproduce(scripts)),
        ("Prerequisites", _paragraph(", ".join(check.requires))),
        ("Scenario", _paragraph(check.scenario or "")),
        ("GPUs", _paragraph("Skipped if the checklist expects no GPUs." if check.needs_gpus else "")),
        ("Parameters for checklists", [_parameter(item) for item in check.parameters.values()]),
    ]
    return _sections(f"{check.id} ({check.severity.value})", check.title, sections)


def explain_scenario(scenario: Scenario) -> str:
    """What a scenario trains, and how long it takes."""
    duration = (
        f"At most {scenario.deadline_s:g} s for each case, in its own process. "
        f"All cases took {scenario.typical_s:g} s on two CPU devices."
    )
    if scenario.pair_s:
        duration += f" With three or more replicas, add {scenario.pair_s:g} s for each pair."
    sections = [
        ("Expected", _paragraph(scenario.expect)),
        ("Cases", _paragraph(", ".join(scenario.cases))),
        ("Tier, strategy and framework", [f"{_INDENT}{scenario.tier}, {scenario.strategy}, {scenario.framework}"]),
        ("Duration", _paragraph(duration)),
    ]
    return _sections(f"Scenario {scenario.id}, version {scenario.version} ({scenario.kind})", scenario.title, sections)


def _reproduce(scripts: list[str]) -> list[str]:
    return [f"{_INDENT}kdoctor explain --reproduce {name}" for name in dict.fromkeys(scripts)]


def _sections(heading: str, title: str, sections: list[tuple[str, list[str]]]) -> str:
    lines = [heading, *_paragraph(title)]
    for name, body in sections:
        lines += ["", name, *body] if body else []
    return "\n".join([*lines, ""])


def _parameter(parameter: Parameter) -> str:
    kind = getattr(parameter.annotation, "__name__", None) or str(parameter.annotation)
    return f"{_INDENT}{parameter.name}: {kind} = {parameter.default!r}"


def _paragraph(text: str) -> list[str]:
    return wrap(text, first=_INDENT)
