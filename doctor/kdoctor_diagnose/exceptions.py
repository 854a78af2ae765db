"""What ``kdoctor explain`` and ``kdoctor.guard`` say about messages and exceptions."""

import importlib.metadata
import traceback
from collections.abc import Iterator

from kdoctor.catalog.explanations import Explanations
from kdoctor.catalog.load import load_catalog
from kdoctor_diagnose.diagnose import diagnose_text
from kdoctor_diagnose.report.formats import render

_PACKAGES = ("keras", "tensorflow", "jax", "numpy", "protobuf")
_MOST_CHARACTERS = 200_000


def describe_exception(error: BaseException) -> str:
    """Why an exception was raised, as for a log with its traceback; empty if the failure is not known."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    catalog = load_catalog()
    log = "\n".join([*_versions(), text[-_MOST_CHARACTERS:]])
    diagnosis = diagnose_text(log, catalog.checks, catalog.scenarios, name="traceback")
    return render(diagnosis, "terminal") if diagnosis.conclusion == "cause" else ""


def _versions() -> Iterator[str]:
    """The installed releases, which decide between causes."""
    for package in _PACKAGES:
        try:
            yield f"{package}=={importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            continue


EXPLANATIONS = Explanations(
    causes=lambda text, checks, scenarios: [cause.id for cause in diagnose_text(text, checks, scenarios).causes],
    exception=describe_exception,
)
