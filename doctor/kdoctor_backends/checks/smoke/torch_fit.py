from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Remedy, Severity
from kdoctor.text.lists import counted
from kdoctor_backends.scenarios import CASES
from kdoctor_checks.smoke._judging import did_not_finish, evidence, finding, unknown
from kdoctor_checks.smoke._trained import trained

_REMEDY = Remedy.change_code(
    "Train with a custom loop that calls the model in DistributedDataParallel, or train Keras on JAX.",
    look=("kdoctor explain --reproduce torch-fit",),
)


@trained(
    "smoke.torch-fit",
    severity=Severity.WARNING,
    scenario="smoke.torch-data-parallel",
    cases=CASES["smoke.torch-fit"],
    requires=(),
    explained_by=(),
    finished=False,
)
def torch_fit(run: SmokeRun, case: SmokeCase, tolerance: float) -> Outcome:
    """Model.fit and keras.distribution of Keras on torch train over all devices, or raise an error.

    Why: Model.fit calls the Keras model itself and not its DistributedDataParallel, so no gradient is exchanged. Each
    rank trains alone on its part of the data, without an error, and their weights differ. keras.distribution has no
    implementation for torch: Keras 3.15.1 accepts DataParallel over several devices and trains on one. This is a
    warning because a custom loop is correct (smoke.torch-data-parallel). Skipped if torch is not installed.
    Remedy: train with a custom loop over the model in DistributedDataParallel, or train Keras on JAX.
    Source: https://keras.io/guides/distributed_training_with_torch/
    Failure modes: torch_fit_trains_alone
    """
    if case.outcome == "raised":
        return evidence(case, f"refused: {case.error_type}")
    if case.outcome != "trained":
        return did_not_finish(run, case)
    return _ranks(case, tolerance) if case.name == "fit" else _devices(case)


def _ranks(case: SmokeCase, tolerance: float) -> Outcome:
    difference = case.measures.get("ranks differ")
    if difference is None:
        return unknown(case, "the weights of the ranks were not compared")
    observed = f"weights of the ranks differ by up to {difference:.2g}"
    if difference <= tolerance:
        return evidence(case, observed)
    observed += ": each rank trains alone, without an error"
    return finding(case, observed, "equal weights on all ranks", _REMEDY, brief="each rank trains alone")


def _devices(case: SmokeCase) -> Outcome:
    used = case.measures.get("devices used")
    if used is None or case.replicas is None:
        return unknown(case, "the devices of the weights were not read")
    observed = f"DataParallel over {counted(case.replicas, 'device')} trains on {used:.0f}"
    if used >= case.replicas:
        return evidence(case, observed)
    return finding(
        case, f"{observed}, without an error", "it trains on all, or raises", _REMEDY, brief="ignores DataParallel"
    )
