"""The commands ``kdoctor`` and ``keras-doctor``. It imports nothing before Ctrl-C is handled."""

from __future__ import annotations

import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line. Ctrl-C at any moment ends it without a traceback."""
    try:
        from keras_doctor.name import check_name  # noqa: PLC0415 - see above

        check_name()
        from kdoctor.cli import main as run  # noqa: PLC0415 - first it must be known that this is our package

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("kdoctor: interrupted", file=sys.stderr)  # noqa: T201 - the command line may not be imported yet
        raise SystemExit(EXIT_INTERRUPTED) from None
    finally:
        import signal  # noqa: PLC0415 - see above

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's shutdown would print a traceback
