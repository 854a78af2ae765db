from collections.abc import Callable, Iterator
from inspect import getdoc

import pytest

from helpers.cases import cases
from kdoctor.check import Check, CheckDefinitionError, check
from kdoctor.facts import Gpus, Host, SmokeRun, Unavailable
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions, Outcome, Severity


def sound(host: Host) -> Iterator[Outcome]:
    """The host is sound.

    Why: an unsound host
    breaks the job.
    Remedy: fix it.
    Source: https://example.org/soundness
    """
    yield from ()


def made(
    function: Callable[..., Iterator[Outcome]], check_id: str = "host.sound", scenario: str | None = None
) -> Check:
    return check(check_id, severity=Severity.ERROR, scenario=scenario)(function)


def test_check_takes_docstring_and_signature() -> None:
    @check("host.sound", severity=Severity.WARNING, requires=["driver.loaded"], needs_gpus=True, judges=("python",))
    def value(host: Host, gpus: Gpus | Unavailable, wanted: Assumptions, *, least: int = 3) -> Iterator[Outcome]:
        """The host is sound.

        Why: an unsound host
        breaks the ``job``.
        Remedy: fix
        it.
        Sources:
            - https://example.org/one
            https://example.org/two
        """
        yield from ()

    assert value.id == "host.sound"
    assert value.family == "host"
    assert value.title == "The host is sound."
    assert value.why == "An unsound host breaks the job."
    assert value.remedy == "Fix it."
    assert value.sources == ("https://example.org/one", "https://example.org/two")
    assert value.severity is Severity.WARNING
    assert value.requires == ("driver.loaded",)
    assert value.needs_gpus
    assert value.judges == ("python",)
    assert value.facts == {"host": Host, "gpus": Gpus, "wanted": Assumptions}
    assert value.tolerant == {"gpus"}
    assert [(item.name, item.annotation, item.default) for item in value.parameters.values()] == [("least", int, 3)]


@cases("sound", "host", "host.", ".sound", "host.Sound", "host.so_und", "host.a--b", "host.a.b")
def test_invalid_id_is_refused(check_id: str) -> None:
    with pytest.raises(CheckDefinitionError, match=r"family\.slug"):
        made(sound, check_id)


@cases(
    None,
    "",
    "A title alone.",
    "A title.\n\nWhy: because.",
    "A title.\n\nSource: https://example.org",
    "A title\nof two lines.\n\nWhy: because.\nRemedy: fix it.\nSource: https://example.org",
    "Why: because.\nRemedy: fix it.\nSource: https://example.org",
    "A title.\n\nWhy:\nRemedy: fix it.\nSource: https://example.org",
    "A title.\n\nWhy: because.\nSource: https://example.org",
)
def test_incomplete_docstring_is_refused(docstring: str | None) -> None:
    def function(host: Host) -> Iterator[Outcome]:
        yield from ()

    function.__doc__ = docstring
    with pytest.raises(CheckDefinitionError, match=r"^host\.sound: the docstring needs"):
        made(function)


def test_positional_parameter_must_ask_for_facts() -> None:
    def number(count: int) -> Iterator[Outcome]:
        yield from ()

    def two(facts: Host | Gpus) -> Iterator[Outcome]:
        yield from ()

    def missing(facts: Unavailable) -> Iterator[Outcome]:
        yield from ()

    for function in (number, two, missing):
        function.__doc__ = sound.__doc__
        with pytest.raises(CheckDefinitionError, match="must be a fact group, Assumptions or VersionMatrix"):
            made(function)


def test_failure_modes_are_optional_and_unique() -> None:
    def catching(host: Host) -> Iterator[Outcome]:
        yield from ()

    assert made(sound).failure_modes == ()
    catching.__doc__ = f"{getdoc(sound)}\nFailure modes: libdevice, compat_804\n"
    assert made(catching).failure_modes == ("libdevice", "compat_804")
    for wrong in ("libdevice, libdevice", "libdevice; compat_804", "Libdevice"):
        catching.__doc__ = f"{getdoc(sound)}\nFailure modes: {wrong}\n"
        with pytest.raises(CheckDefinitionError, match="Failure modes:"):
            made(catching)


def test_check_may_ask_for_version_matrix() -> None:
    def informed(matrix: VersionMatrix) -> Iterator[Outcome]:
        yield from ()

    informed.__doc__ = sound.__doc__
    assert made(informed).facts == {"matrix": VersionMatrix}


def test_parameter_without_type_is_refused() -> None:
    def untyped(host) -> Iterator[Outcome]:  # type: ignore[no-untyped-def] # noqa: ANN001 - the defect under test
        yield from ()

    untyped.__doc__ = sound.__doc__
    with pytest.raises(CheckDefinitionError, match="'host' has no type"):
        made(untyped)


def test_default_and_names_have_their_types() -> None:
    def default(host: Host, *, least: int = "2") -> Iterator[Outcome]:  # type: ignore[assignment]
        yield from ()

    default.__doc__ = sound.__doc__
    with pytest.raises(CheckDefinitionError, match="'least': its default, the string '2'"):
        made(default)
    with pytest.raises(CheckDefinitionError, match=r"found the string 'driver\.loaded'"):
        check("host.sound", requires="driver.loaded")(sound)


def test_keyword_parameter_requires_default() -> None:
    def strict(host: Host, *, least: int) -> Iterator[Outcome]:
        yield from ()

    strict.__doc__ = sound.__doc__
    with pytest.raises(CheckDefinitionError, match="'least' needs a default"):
        made(strict)


def test_scenario_requires_smoke_run_parameter() -> None:
    def trained(run: SmokeRun) -> Iterator[Outcome]:
        yield from ()

    trained.__doc__ = sound.__doc__
    assert made(trained, "smoke.sound", scenario="smoke.baseline").scenario == "smoke.baseline"
    with pytest.raises(CheckDefinitionError, match="SmokeRun"):
        made(trained, "smoke.sound")
    with pytest.raises(CheckDefinitionError, match="SmokeRun"):
        made(sound, scenario="smoke.baseline")
