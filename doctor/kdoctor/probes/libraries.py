"""Finds the libraries that the target's TensorFlow opens, with a program in the target interpreter."""

from kdoctor.facts import Facts, Libraries, Unavailable
from kdoctor.probes.probe import Context, Probe
from kdoctor.probes.process.child import ChildEnd
from kdoctor.probes.process.launch import program_argv
from kdoctor.probes.process.records import RecordError, build

DEADLINE_S = 20.0
"""On a cold network file system the NVIDIA libraries (4 GB) take seconds to load."""

VERSIONS_S = 12.0
"""Part of the deadline for the libraries' version calls; those that do not answer in time are reported as such."""


def collect(context: Context) -> Facts:
    """Run :mod:`kdoctor_target.inspect.libraries` and read its record."""
    settings = {"deadline_s": DEADLINE_S, "versions_s": VERSIONS_S}
    argv = program_argv(context.python, "inspect.libraries", settings)
    end = context.children.run(argv, env=context.environ, deadline_s=DEADLINE_S)
    return {Libraries: read_end(end)}


def read_end(end: ChildEnd) -> Libraries | Unavailable:
    """The facts that the child sent, or the reason why it sent none."""
    for record in end.records:
        match record:
            case {"facts": facts}:
                try:
                    return build(Libraries, facts)
                except RecordError as error:
                    return Unavailable(unavailable=f"the library search returned invalid data: {error}")
            case {"error": str(error)}:
                return Unavailable(unavailable=error)
            case _:
                pass
    return Unavailable(unavailable=f"the library search {end.describe()}")


PROBE = Probe(name="libraries", provides=(Libraries,), collect=collect, deadline_s=DEADLINE_S + 10)
