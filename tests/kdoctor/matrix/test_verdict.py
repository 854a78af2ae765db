"""The outcome and the commands of a verdict."""

from helpers.cases import cases
from helpers.matrices import A100, release
from kdoctor.matrix.verdict import Machine, Reason, Verdict

RELEASE = release("2.0.0")
AGAINST, MISSING, CAUTION = (
    Reason("against", "driver", "a"),
    Reason("missing", "gpu", "m"),
    Reason("caution", "gpu", "c"),
)


@cases(
    (Machine(), False, False),
    (Machine(gpus=()), False, True),
    (Machine(gpus=(), unnamed_gpus=("X",)), False, False),
    (Machine(gpus=(A100,), cuda="12.5"), True, False),
    (Machine(gpus=(A100,), cudnn="9.3"), True, False),
)
def test_machine_with_libraries_of_the_system_or_without_gpus(machine: Machine, *, system: bool, cpu: bool) -> None:
    assert (machine.system_libraries, machine.for_cpu) == (system, cpu)


@cases(((), None), (("cudnn",), "/nvidia/cudnn/lib"), (("cudnn", "cublas"), "/nvidia/*/lib"))
def test_command_exports_the_folders_that_are_not_searched(folders: tuple[str, ...], path: str | None) -> None:
    found = Verdict(release=RELEASE, requirements=("tensorflow[and-cuda]==2.0.0", "numpy<2"), hidden_folders=folders)
    install, *export = found.commands
    assert install == "python -m pip install 'tensorflow[and-cuda]==2.0.0' 'numpy<2'"
    assert found.command == install
    assert export == ([found.export] if path else [])
    assert path is None or path in export[0]
    assert all(line.startswith("export LD_LIBRARY_PATH=") for line in export)
