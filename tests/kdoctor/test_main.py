"""The start of the command."""

import subprocess
import sys
from textwrap import dedent

INTERRUPTED_IN_A_CALLBACK = dedent("""
    import sys, time, types, weakref
    from kdoctor.__main__ import main

    def interrupted(reference):
        raise KeyboardInterrupt

    def run():
        holder = type("Holder", (), {})()
        reference = weakref.ref(holder, interrupted)
        del holder
        while True:
            time.sleep(0.1)

    sys.modules["kdoctor.cli"] = types.SimpleNamespace(main=run)
    main()
""")


def test_interrupt_in_a_callback_that_cannot_raise_is_not_lost() -> None:
    command = [sys.executable, "-c", INTERRUPTED_IN_A_CALLBACK]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stderr) == (130, "kdoctor: interrupted\n")
