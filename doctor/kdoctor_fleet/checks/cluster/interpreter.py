from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Action, Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import by_hand
from kdoctor_fleet.facts import Fleet

_FIX = by_hand(
    "On {nodes}, use the environment and the keras.json of the other nodes.",
    Action.REINSTALL,
    "python --version",
)


@check("cluster.interpreter", severity=Severity.ERROR)
def interpreter(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes have the same Python, and Keras with the same backend and settings.

    Why: pickled objects and hashes differ between releases of Python. Another backend or floatx of Keras on one node
    makes it train another model.
    Remedy: start all nodes from one environment, with the same keras.json.
    Sources:
        https://docs.python.org/3/library/pickle.html#comparison-with-marshal
        https://keras.io/getting_started/#configuring-your-backend
    """
    python = Comparison(
        section="python", what="interpreter", patterns=("version", "implementation", "platform"), fix=_FIX, label=_label
    )
    keras = Comparison(
        section="keras",
        what="Keras that tf.keras is",
        fix=_FIX,
        label=lambda name: f"Keras {name}",
        explained_by=("cluster.frameworks",),
    )
    yield from compare(fleet, python, keras)


def _label(name: str) -> str:
    return "Python" if name == "version" else name
