from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install
from kdoctor.facts import Packages, Target
from kdoctor.model import Assumptions, Evidence, Finding, Outcome, Remedy, Rollback, Severity


@check("versions.jax-installed", severity=Severity.ERROR)
def jax_installed(packages: Packages, target: Target, assumptions: Assumptions) -> Iterator[Outcome]:
    """JAX and Keras are installed in the target environment.

    Why: without JAX a job with KERAS_BACKEND=jax stops at its import of Keras.
    Remedy: install JAX, or check another environment with --python.
    Source: https://docs.jax.dev/en/latest/installation.html
    """
    cuda = "[cuda12]" if assumptions.expects_gpus and target.platform.startswith("linux") else ""
    for name, title, extra in (("jax", "JAX", cuda), ("keras", "Keras", "")):
        found = packages.find(name)
        if found is not None:
            yield Evidence(subject=title, observed=f"{name} {found.version}", brief=f"{title} {found.version}")
            continue
        yield Finding(
            subject=title,
            observed=f"not found by {target.executable} ({target.chosen_by})",
            brief="not installed in the examined environment",
            expected="JAX and Keras",
            remedy=Remedy.reinstall(
                f"Install {title}, or check another environment with --python.", install(target, packages, name + extra)
            ),
            rollback=Rollback.nothing("not needed (uninstall it)"),
        )
