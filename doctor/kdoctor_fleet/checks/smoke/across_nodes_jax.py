from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained
from kdoctor_fleet.checks.smoke._across import all_joined
from kdoctor_fleet.scenarios import JAX


@trained("smoke.across-nodes-jax", cases=JAX.cases, requires=(), replicated=False)
def across_nodes_jax(compare: Comparison, case: SmokeCase) -> Outcome:
    """The workers of TF_CONFIG train Keras on JAX together and match one device.

    Why: keras.distribution.initialize and DataParallel are how Keras 3 spans nodes. Runs only if it is requested, on
    all nodes at once. Skipped if JAX is not installed.
    Remedy: find the worker that raised, crashed or waited. Check name resolution, firewalls and the network between
    the nodes.
    Source: https://keras.io/api/distribution/distribution_utils/
    """
    return all_joined(case, compare.judge(case))
