"""The probes of this extension (entry point ``kdoctor.probes``)."""

from kdoctor.probes.probe import Probe
from kdoctor_fleet.probes import network
from kdoctor_fleet.probes.job_hosts import probe as job_hosts

PROBES: tuple[Probe, ...] = (network.PROBE, job_hosts.PROBE)
