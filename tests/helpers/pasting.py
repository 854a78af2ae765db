"""Whether a printed command would work where it is pasted, as far as that can be known without running it."""

import re
import shlex
from functools import cache

from helpers.command import captured, kdoctor_here

_OWN = re.compile(r"(?:^|&& |; )(?:\S*/)?kdoctor (.+?)(?=$| && |;|  #)")


def why_not(command: str) -> str:
    """Why the shell or kdoctor refuses a command; empty if it does not.

    kdoctor is asked with ``--help``, so that it reads the options and does nothing. What ``explain`` is to explain must
    be known.
    """
    # Other values make no other command.
    return _why_not(re.sub(r"\d+", "1", command) if "kdoctor" not in command else command)


@cache
def _why_not(command: str) -> str:
    syntax = captured(["bash", "-n", "-c", command])
    refused = [syntax.stderr] if syntax.returncode else []
    for own in _OWN.findall(command):
        words = shlex.split(own, comments=True)
        done = kdoctor_here(*words, *([] if words[0] == "explain" else ["--help"]))
        refused += [done.stderr] if done.returncode else []
    return "; ".join(refused)
