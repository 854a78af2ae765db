"""The commands ``kdoctor`` and ``keras-doctor``, and ``python -m kdoctor``.

Before Ctrl-C is handled, it imports only what Python has loaded.
"""

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line. Ctrl-C at any moment ends it without a traceback."""
    sys.unraisablehook = _interrupt_later
    _name_files_in_utf8()
    try:
        _leave_working_directory()
        _search_own_packages_first()
        import gc  # noqa: PLC0415 - see above

        # Nearly all objects of a command live until its end. Looking for garbage among them took a fifth of its time.
        gc.set_threshold(50_000, 20, 100)

        from kdoctor.cli import main as run  # noqa: PLC0415 - see above

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            print("kdoctor: interrupted", file=sys.stderr)  # noqa: T201 - the command line may not be imported yet
        raise SystemExit(EXIT_INTERRUPTED) from None
    finally:
        import signal  # noqa: PLC0415 - see above

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's shutdown would print a traceback


def _name_files_in_utf8() -> None:
    """Start again in Python's UTF-8 mode where names of files are ASCII, as with ``LC_ALL=C`` and ``PYTHONUTF8=0``.

    Python would read the other names as bytes without a meaning, which cannot be printed, written or imported.
    """
    if sys.getfilesystemencoding() == "ascii" and "utf8" not in sys._xoptions:  # noqa: SLF001 - a documented name
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - this program


def _interrupt_later(error: "UnraisableHookArgs") -> None:
    """Deliver a Ctrl-C again that came in a callback that cannot raise, as that of a weak reference in an import."""
    if error.exc_type is KeyboardInterrupt:
        _thread.start_new_thread(_thread.interrupt_main, ())  # a thread: this hook cannot raise either
    else:
        sys.__unraisablehook__(error)


def _leave_working_directory() -> None:
    """Remove the working directory from the path if an empty entry of ``PYTHONPATH`` put it there.

    Such entries come from ``PYTHONPATH=$PYTHONPATH:folder`` where it was not set. An entry ``.`` is meant, and stays.
    """
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if len(entries) == 1 or "" not in entries:
        return
    try:
        folder = os.getcwd()  # noqa: PTH109 - pathlib could be a file in it
    except OSError:
        return
    named = [os.path.abspath(entry) for entry in entries if entry]  # noqa: PTH100 - see above
    own = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - see above
    if folder not in (*named, own):
        sys.path[:] = [entry for entry in sys.path if entry != folder]


def _search_own_packages_first() -> None:
    """Search the folders of ``PYTHONPATH``, which are the job's, last, unless kdoctor itself is in one of them.

    Otherwise a file there, such as ``packaging.py``, would replace a package that kdoctor needs.
    """
    named = {os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}  # noqa: PTH100 - see above
    if os.path.dirname(os.path.dirname(__file__)) not in named:  # noqa: PTH120 - see above
        sys.path.sort(key=named.__contains__)


if __name__ == "__main__":
    # `python -m` puts the working directory first, where a file could replace a module that kdoctor needs.
    try:
        if sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 - see above
            del sys.path[0]
    except OSError:
        pass
    main()
