from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import install_packages
from kdoctor_fleet.facts import Fleet

NAMES = ("tensorflow*", "tf-nightly*", "keras*", "tf-keras", "jax", "jaxlib", "torch", "numpy")
"""Packages whose versions change what a training computes."""


@check("cluster.frameworks", severity=Severity.ERROR)
def frameworks(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes have the same TensorFlow, Keras, JAX, torch and numpy.

    Why: workers build the same graph and exchange gradients by its names and shapes. Other releases on one node make
    the job hang at its first collective operation, or train another model than the other nodes.
    Remedy: install the versions of the majority on the odd nodes, or start all nodes from one image.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras
    """
    yield from compare(
        fleet,
        Comparison(section="packages", what="packages", patterns=NAMES, absent="not installed", fix=install_packages),
    )
