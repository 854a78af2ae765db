from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import install_driver
from kdoctor_fleet.facts import Fleet


@check("cluster.driver", severity=Severity.ERROR)
def driver(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes run the same NVIDIA driver.

    Why: a node that was updated and rebooted runs another driver than its neighbours. Kernels that the driver compiles
    differ there, NVLink's fabric manager must match the driver, and a build of TensorFlow may not run at all.
    Remedy: install the driver of the majority on the odd nodes, and reboot them.
    Source: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    yield from compare(fleet, Comparison(section="driver", what="driver", fix=install_driver, label=_label))


def _label(name: str) -> str:
    return "driver" if name == "version" else f"driver {name}"
