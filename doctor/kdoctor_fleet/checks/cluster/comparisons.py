"""The checks that compare a section of the recorded facts over all nodes."""

from kdoctor.check import Check
from kdoctor.model import Action, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compared
from kdoctor_fleet.checks.cluster._fixes import by_hand, install_driver, install_packages, set_variables

_FRAMEWORKS = ("tensorflow*", "tf-nightly*", "keras*", "tf-keras", "jax", "jaxlib", "torch", "numpy")
"""Packages whose versions change what a training computes."""
_OF_ONE_NODE = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "TF_CONFIG", "KDOCTOR_*", "PMIX_*", "MPI_*")
_LIBRARIES = {"cudnn": "cuDNN", "nccl": "NCCL", "cudart": "CUDA runtime", "cublas": "cuBLAS", "cublasLt": "cuBLASLt"}
_SAME_IMAGE = by_hand(
    "On {nodes}, install the libraries of the other nodes, or use the same image.",
    Action.REINSTALL,
    "ldconfig -p | grep -E 'cudnn|nccl|cudart'",
)
_SAME_ENVIRONMENT = by_hand(
    "On {nodes}, use the environment and the keras.json of the other nodes.", Action.REINSTALL, "python --version"
)
_COUNT_GPUS = by_hand(
    "Leave out {nodes}, or find out why GPUs are missing or other ones are installed.",
    Action.INSPECT_HARDWARE,
    "nvidia-smi -L",
)
_SAME_LINKS = by_hand(
    "Compare {nodes} with another node, then repair or leave out.", Action.INSPECT_HARDWARE, "nvidia-smi topo -m"
)
_SAME_NETWORK = by_hand(
    "On {nodes}, compare cables, firmware and MTU with another node.", Action.CONFIGURE, "ibstat; ip link show"
)
_SAME_SYSTEM = by_hand(
    "Update {nodes} to the system or image of the other nodes, and reboot.", Action.REBOOT, "uname -r"
)


@compared("cluster.driver", Comparison(section="driver", what="driver", fix=install_driver), severity=Severity.ERROR)
def driver(fact: str) -> str:
    """All nodes run the same NVIDIA driver.

    Why: a node that was updated and rebooted runs another driver than its neighbours. Kernels that the driver compiles
    differ there, NVLink's fabric manager must match the driver, and a build of TensorFlow may not run at all.
    Remedy: install the driver of the majority on the odd nodes, and reboot them.
    Source: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    return "driver" if fact == "version" else f"driver {fact}"


@compared(
    "cluster.system", Comparison(section="host", what="operating system", fix=_SAME_SYSTEM), severity=Severity.WARNING
)
def system(fact: str) -> str:
    """All nodes run the same kernel, distribution, C library and container image.

    Why: nodes drift apart when some are updated and others are not. The driver's kernel module is built for one kernel,
    and a job whose nodes run two images runs two environments.
    Remedy: update or reimage the odd nodes.
    Source: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    return fact


@compared("cluster.gpus", Comparison(section="gpus", what="GPUs", fix=_COUNT_GPUS), severity=Severity.ERROR)
def gpus(fact: str) -> str:
    """All nodes have the same number and model of GPUs.

    Why: every worker of MultiWorkerMirroredStrategy must have the same number of replicas, and the slowest GPU sets the
    pace of all.
    Remedy: leave out the odd nodes, or find out why GPUs are missing there.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/MultiWorkerMirroredStrategy
    """
    return "GPU count" if fact == "count" else f"GPUs with {fact.replace('.', ' ')}:"


@compared(
    "cluster.topology",
    Comparison(section="topology", what="links between GPUs", fix=_SAME_LINKS, explained_by=("cluster.gpus",)),
    severity=Severity.WARNING,
)
def topology(fact: str) -> str:
    """The GPUs of all nodes are connected in the same way.

    Why: a node with fewer active NVLinks or pairs on slower paths finishes every all-reduce last, and all others wait.
    Remedy: compare the topology of an odd node with that of another one, and repair or leave out the odd one.
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
    """
    return fact.replace("pairs.", "pairs of GPUs at ").replace("nvlinks.", "NVLinks ")


@compared(
    "cluster.network",
    Comparison(section="network", what="network devices", fix=_SAME_NETWORK),
    severity=Severity.WARNING,
)
def network(fact: str) -> str:
    """Rate, firmware and MTU of the network devices are the same on all nodes.

    Why: one port at half its rate slows down every collective operation over all nodes, and packets that are larger
    than a neighbour's MTU are dropped without an error.
    Remedy: repair the link or cable, set the same MTU, and update the firmware of the odd nodes.
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#networking-issues
    """
    return fact


@compared(
    "cluster.cuda-libraries",
    Comparison(
        section="libraries",
        what="CUDA libraries",
        without=("cuda", "cuda.*", "*.found-by"),
        fix=_SAME_IMAGE,
        explained_by=("cluster.packages", "cluster.frameworks", "cluster.system"),
    ),
    severity=Severity.ERROR,
    explained_by=("versions.tensorflow-installed",),
)
def cuda_libraries(fact: str) -> str:
    """The loader finds the same CUDA, cuDNN and NCCL on all nodes.

    Why: NCCL's processes must be of one version to set up a communicator, and other versions of cuDNN or cuBLAS choose
    other algorithms, so that nodes compute slightly different gradients.
    Remedy: install the same libraries on all nodes, or start them from one image.
    Sources:
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/support-matrix.html
    """
    return _LIBRARIES.get(fact, fact)


@compared(
    "cluster.frameworks",
    Comparison(section="packages", what="packages", patterns=_FRAMEWORKS, absent="not installed", fix=install_packages),
    severity=Severity.ERROR,
)
def frameworks(fact: str) -> str:
    """All nodes have the same TensorFlow, Keras, JAX, torch and numpy.

    Why: workers build the same graph and exchange gradients by its names and shapes. Other releases on one node make
    the job hang at its first collective operation, or train another model than the other nodes.
    Remedy: install the versions of the majority on the odd nodes, or start all nodes from one image.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras
    """
    return fact


@compared(
    "cluster.packages",
    Comparison(
        section="packages",
        what="packages",
        without=_FRAMEWORKS,
        absent="not installed",
        fix=install_packages,
        explained_by=("cluster.frameworks", "cluster.system"),
    ),
    severity=Severity.WARNING,
)
def packages(fact: str) -> str:
    """All nodes have the same further packages.

    Why: nodes of one job should run one environment. A library that differs on one node makes data or preprocessing
    differ there, and an error that only this node shows is hard to find.
    Remedy: install the versions of the majority on the odd nodes, or start all nodes from one image.
    Source: https://pip.pypa.io/en/stable/topics/repeatable-installs/
    """
    return fact


@compared(
    "cluster.environment",
    Comparison(section="environment", what="variables", without=_OF_ONE_NODE, absent="not set", fix=set_variables),
    severity=Severity.ERROR,
)
def environment(fact: str) -> str:
    """The variables of NCCL, TensorFlow, XLA, Keras and CUDA are the same on all nodes.

    Why: NCCL does not check that its variables agree. NCCL_PROTO or NCCL_ALGO on one node only makes the job hang, and
    XLA_FLAGS or TF_... on one node make it compute something else. Paths are compared as set or not set.
    Remedy: set the variables in the job's script, and let the launcher pass them on (mpirun -x, srun --export).
    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    return fact


@compared(
    "cluster.interpreter",
    Comparison(
        section="python", what="interpreter", patterns=("version", "implementation", "platform"), fix=_SAME_ENVIRONMENT
    ),
    Comparison(
        section="keras",
        what="Keras that tf.keras is",
        fix=_SAME_ENVIRONMENT,
        label=lambda fact: f"Keras {fact}",
        explained_by=("cluster.frameworks",),
    ),
    severity=Severity.ERROR,
)
def interpreter(fact: str) -> str:
    """All nodes have the same Python, and Keras with the same backend and settings.

    Why: pickled objects and hashes differ between releases of Python. Another backend or floatx of Keras on one node
    makes it train another model.
    Remedy: start all nodes from one environment, with the same keras.json.
    Sources:
        https://docs.python.org/3/library/pickle.html#comparison-with-marshal
        https://keras.io/getting_started/#configuring-your-backend
    """
    return "Python" if fact == "version" else fact


CHECKS: tuple[Check, ...] = (
    driver, system, gpus, topology, network, cuda_libraries, frameworks, packages, environment, interpreter
)  # fmt: skip
