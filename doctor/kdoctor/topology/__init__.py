"""The machine as people need to see it: how its GPUs are connected, and which of them to take for N replicas."""

from kdoctor.topology.advice import Advice, advise
from kdoctor.topology.choice import Choice, choose
from kdoctor.topology.layout import Layout, Link, read_layout

__all__ = ["Advice", "Choice", "Layout", "Link", "advise", "choose", "read_layout"]
