"""Command lines that run programs of ``kdoctor_target`` in the target interpreter, and others in kdoctor's."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

# Loads the package from its folder, without adding kdoctor's dependencies next to it to the target's path. It also
# removes the working directory from the path, before it imports anything that is not built in, and writes no bytecode
# for kdoctor's files.
_BOOTSTRAP = """\
import sys
if sys.path and not sys.path[0]: del sys.path[0]
import importlib, importlib.util
folder, program, settings = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "kdoctor_target", folder + "/__init__.py", submodule_search_locations=[folder])
package = importlib.util.module_from_spec(spec)
sys.modules["kdoctor_target"] = package
keep, sys.dont_write_bytecode = sys.dont_write_bytecode, True
spec.loader.exec_module(package)
module = importlib.import_module("kdoctor_target." + program)
sys.dont_write_bytecode = keep
import json
module.main(json.loads(settings))
"""

# The job's PYTHONPATH and similar variables must not affect kdoctor's interpreter (-I), which gets this process's
# path instead, to find kdoctor wherever it is installed.
_OWN_BOOTSTRAP = """\
import importlib, json, sys
path, module, settings = sys.argv[1:]
sys.path[:] = [entry for entry in json.loads(path) if entry]
importlib.import_module(module).main(json.loads(settings))
"""


def target_folder() -> Path:
    """The folder of the programs for the target interpreter, next to kdoctor's package.

    It is not imported by name, because another folder of that name may come first on the path.
    """
    folder = Path(__file__).resolve().parents[3] / "kdoctor_target"
    if not (folder / "__init__.py").is_file():
        raise FileNotFoundError("kdoctor's programs (kdoctor_target) are missing: reinstall keras-doctor")
    return folder


def program_argv(python: str, program: str, settings: Mapping[str, object]) -> list[str]:
    """The command line that runs ``kdoctor_target.<program>.main(settings)`` in that interpreter."""
    return [python, "-c", _BOOTSTRAP, str(target_folder()), program, json.dumps(settings)]


def own_program_argv(module: str, settings: Mapping[str, object]) -> list[str]:
    """The command line that runs ``<module>.main(settings)`` in kdoctor's interpreter."""
    return [sys.executable, "-I", "-c", _OWN_BOOTSTRAP, json.dumps(sys.path), module, json.dumps(settings)]
