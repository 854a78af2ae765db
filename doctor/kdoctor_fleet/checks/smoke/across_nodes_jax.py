from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TOLERANCE, Comparison, judge_cases
from kdoctor_fleet.checks.smoke._across import all_joined


@check("smoke.across-nodes-jax", severity=Severity.ERROR, explained_by=NO_GPU, scenario="smoke.across-nodes-jax")
def across_nodes_jax(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """The workers of TF_CONFIG train Keras on JAX together and match one device.

    Why: keras.distribution.initialize and DataParallel are how Keras 3 spans nodes. Runs only if it is requested, on
    all nodes at once. Skipped if JAX is not installed.
    Remedy: find the worker that raised, crashed or waited. Check name resolution, firewalls and the network between
    the nodes.
    Source: https://keras.io/api/distribution/distribution_utils/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)
    yield from judge_cases(
        run, ("data-parallel",), lambda case: all_joined(case, compare.judge(case)), replicated=False
    )
