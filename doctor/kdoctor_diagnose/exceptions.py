"""What ``kdoctor explain`` and ``kdoctor.guard`` say about messages and exceptions."""

import importlib.metadata
import traceback

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
    installed = importlib.metadata.distributions()  # the releases decide between causes
    versions = [f"{item.metadata['Name']}=={item.version}" for item in installed if item.metadata["Name"] in _PACKAGES]
    log = "\n".join([*versions, text[-_MOST_CHARACTERS:]])
    diagnosis = diagnose_text(log, catalog.checks, catalog.scenarios, name="traceback")
    return render(diagnosis, "terminal") if diagnosis.conclusion == "cause" else ""


EXPLANATIONS = Explanations(
    causes=lambda text, checks, scenarios: [cause.id for cause in diagnose_text(text, checks, scenarios).causes],
    exception=describe_exception,
)
