"""Defines a built-in scenario."""

from collections.abc import Mapping
from pathlib import Path

from kdoctor.defects import load_defects
from kdoctor.probes.process.launch import target_folder
from kdoctor.smoke.scenario import Framework, Scenario, ScenarioKind, Strategy, Tier

# A case takes one to three seconds on a CPU. On a GPU that is newer than TensorFlow's build, the driver
# compiles every kernel first, which takes minutes.
_DEADLINE_S = 240.0
SPEED_EXPECTED = "Each GPU is about as fast as the others of its model. TFLOP/s and GB/s are reported."
"""What trainings that measure each GPU expect, on every backend."""
SAME_BITS_EXPECTED = (
    "Fixed, deterministic programs give the same bits on all devices of the same model, and each time on each device, "
    "while the devices are at work. On GPUs this takes the time that hot_s sets; on CPU devices at most two seconds."
)
HOT_S = 30.0
"""Seconds for which devices run the same programs again and again, unless a checklist sets ``hot_s``."""


def define(  # noqa: PLR0913 - the fields of a scenario
    id: str,  # noqa: A002 - the field's name
    *,
    title: str,
    expect: str,
    cases: tuple[str, ...] | Mapping[str, tuple[str, ...]],
    typical_s: float,
    kind: ScenarioKind = "baseline",
    tier: Tier = "standard",
    version: int = 1,
    strategy: Strategy = "mirrored",
    framework: Framework = "tensorflow",
    deadline_s: float = _DEADLINE_S,
    pair_s: float = 0.0,
    folder: Path | None = None,
    needs_options: str = "",
    settings: Mapping[str, float] | None = None,
    lasts: str = "",
) -> Scenario:
    """A scenario whose program is named like its id, in kdoctor's folder of programs or in that of a plugin.

    ``cases`` are judged by the check with the scenario's id, or by the checks that a mapping names. Those of the known
    defects that this scenario trains are added to them.
    """
    judged_by = cases if isinstance(cases, Mapping) else {id: cases}
    named = [case for own in judged_by.values() for case in own]
    for defect in load_defects().values():
        named += [*defect.cases, *defect.alternatives] if defect.scenario == id else []
    program = f"{id.removeprefix('smoke.').replace('-', '_')}.py"
    return Scenario(
        id=id,
        version=version,
        kind=kind,
        title=title,
        expect=expect,
        program=(folder or target_folder() / "scenarios") / program,
        cases=tuple(dict.fromkeys(named)),
        judged_by=judged_by,
        deadline_s=deadline_s,
        tier=tier,
        strategy=strategy,
        framework=framework,
        typical_s=typical_s,
        pair_s=pair_s,
        needs_options=needs_options,
        settings=tuple((settings or {}).items()),
        lasts=lasts,
    )
