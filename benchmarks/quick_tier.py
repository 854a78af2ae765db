"""Trains the quick tier on two CPU replicas, with or without sampling GPUs."""

import os
import sys

from kdoctor.facts import SmokeRun
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.smoke.builtin import SCENARIOS
from kdoctor.smoke.gpu_sampler import Sampler
from kdoctor.smoke.session import SmokeSession, SmokeSettings


def main() -> None:
    """Train and print the number of cases and samples.

    Raises:
        SystemExit: a case is missing or no GPU was sampled, so that the time is meaningless.
    """
    context = Context(python=sys.executable, chosen_by="kdoctor's own", environ=dict(os.environ), children=Children())
    sampler = Sampler(context, deadline_s=300) if sys.argv[1] == "sampled" else None
    scenarios = [scenario for scenario in SCENARIOS if scenario.tier == "quick"]
    runs = SmokeSession(scenarios, SmokeSettings(devices_kind="cpu", replicas=2), context).run().runs
    trained = [case.name for run in runs.values() if isinstance(run, SmokeRun) for case in run.cases]
    samples: list[int] = []
    if sampler is not None:
        sampler.end()
        samples = [gpu.before.samples for gpu in sampler.facts().gpus]
    if len(trained) != sum(len(scenario.cases) for scenario in scenarios) or (sampler and not all(samples)):
        raise SystemExit(f"cases: {trained}, samples: {samples}, {sampler and sampler.facts().error}")
    print(f"{len(trained)} cases, {sum(samples)} samples of {len(samples)} GPUs")


if __name__ == "__main__":
    main()
