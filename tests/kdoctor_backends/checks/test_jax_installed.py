from helpers.facts import PYTHON, package, packages, target
from helpers.rows import fails, passes, table
from kdoctor.model import Severity

JAX, KERAS = package("jax", "0.10.2"), package("keras", "3.15.1")

test_jax_installed = table(
    "versions.jax-installed",
    Severity.ERROR,
    passes(packages(JAX, KERAS), target(), briefs=["JAX 0.10.2", "Keras 3.15.1"]),
    fails(packages(KERAS), target(), of=["JAX"], commands=(f"{PYTHON} -m pip install 'jax[cuda12]'",)),
    fails(packages(KERAS), target(platform="macosx-14.0-arm64"), commands=(f"{PYTHON} -m pip install jax",)),
    fails(packages(package("numpy", "2.4.6")), target(), of=["JAX", "Keras"]),
)
