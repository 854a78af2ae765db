"""What the names of TensorFlow and Keras stand for, whatever way they were imported."""

from __future__ import annotations

import re
import sys
from enum import Enum
from functools import lru_cache

_PREFIXES = (
    ("tensorflow.compat.v2", "tensorflow"),
    ("tensorflow.python.keras", "keras"),
    ("tensorflow._api.v2.v2.keras", "keras"),
    ("tensorflow.keras", "keras"),
    ("tf_keras", "keras"),
    ("keras.api._v2.keras", "keras"),
    ("keras.api", "keras"),
    ("keras.src", "keras"),
    ("tensorflow.optimizers", "keras.optimizers"),
    ("tensorflow.metrics", "keras.metrics"),
    ("tensorflow_addons.optimizers", "keras.optimizers"),
)


class Kind(Enum):
    """What calling an external name gives."""

    STRATEGY = "strategy"
    MODEL = "model"
    LOADED = "loaded model"
    INPUT = "input"
    LAYER = "layer"
    OPTIMIZER = "optimizer"
    METRIC = "metric"
    CALLBACK = "callback"
    DATASET = "dataset"
    READY_DATASET = "dataset that is batched and prefetched"
    TRANSPARENT = "its first argument"
    HARMLESS = "nothing with variables"
    UNKNOWN = "unknown"


_HARMLESS_ROOTS = sys.stdlib_module_names | {
    "PIL", "absl", "albumentations", "builtins", "cv2", "google", "h5py", "hydra", "jax", "keras", "librosa",
    "matplotlib", "mlflow", "np", "numpy", "omegaconf", "optuna", "pandas", "pkg_resources", "psutil", "pynvml",
    "requests", "scipy", "seaborn", "skimage", "sklearn", "sox", "tensorboard", "tensorflow", "tensorflow_addons",
    "tensorflow_datasets", "tensorflow_io", "tensorflow_text", "torch", "tqdm", "wandb", "yaml",
}  # fmt: skip
_MODELS = {
    "keras.Model", "keras.Sequential", "keras.models.Model", "keras.models.Sequential", "keras.models.clone_model",
    "keras.models.model_from_json", "keras.models.model_from_config", "keras.engine.training.Model",
}  # fmt: skip
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.STRATEGY, re.compile(r"tensorflow\.distribute\.(experimental\.)?\w*Strategy(V2)?$")),
    (Kind.LOADED, re.compile(r"keras\.(models|saving)\.(\w+\.)*load_model$")),
    (Kind.INPUT, re.compile(r"keras\.(layers\.)?Input$")),
    (Kind.MODEL, re.compile(r"keras\.applications\.(\w+\.)*[A-Z]\w*$")),
    (Kind.LAYER, re.compile(r"keras\.layers\.(\w+\.)*[A-Z]\w*$")),
    (Kind.OPTIMIZER, re.compile(r"keras\.optimizers\.(?!.*schedules)(\w+\.)*[A-Z]\w*$")),
    (Kind.OPTIMIZER, re.compile(r"keras\.mixed_precision\.LossScaleOptimizer$")),
    (Kind.METRIC, re.compile(r"keras\.metrics\.(\w+\.)*[A-Z]\w*$")),
    (Kind.CALLBACK, re.compile(r"keras\.callbacks\.(\w+\.)*[A-Z]\w*$")),
    (Kind.READY_DATASET, re.compile(r"keras\.(utils|preprocessing)\.(\w+\.)*\w+_dataset_from_directory$")),
    (Kind.READY_DATASET, re.compile(r"tensorflow\.data\.experimental\.(make_csv|make_batched)\w+$")),
    (Kind.DATASET, re.compile(r"tensorflow\.data\.(experimental\.)?Dataset\.(?!sample|choose)\w+$")),
    (Kind.DATASET, re.compile(r"tensorflow\.data\.(experimental\.)?\w+Dataset$")),
    (Kind.DATASET, re.compile(r"tensorflow_datasets\.load$")),
    (Kind.TRANSPARENT, re.compile(r"(tensorflow\.(function|autograph\.experimental\.do_not_convert))$")),
)
BATCH_NORMALIZATION = re.compile(r"keras\.layers\.(\w+\.)*BatchNormalization$")
WEIGHTLESS = re.compile(
    r"keras\.layers\.(\w+\.)*(Random\w+|Rescaling|Resizing|CenterCrop|AutoContrast|Solarization|CutMix|MixUp|AugMix"
    r"|Dropout|SpatialDropout\dD|Flatten|Reshape|Permute|Activation|ReLU|Softmax|\w+Pool(ing)?\dD|ZeroPadding\dD)$"
)
"""Layers without weights: augmentation, shapes, activations."""
LIST_LOCAL_DEVICES = re.compile(r"tensorflow\.python\.client\.device_lib\.list_local_devices$")
MULTI_GPU_MODEL = re.compile(r"keras\.utils\.(\w+\.)*multi_gpu_model$")
GLOBAL_STRATEGY = re.compile(r"tensorflow\.distribute\.experimental_set_strategy$")

SEVERAL_REPLICAS = frozenset(
    {
        "MirroredStrategy",
        "MultiWorkerMirroredStrategy",
        "TPUStrategy",
        "CentralStorageStrategy",
        "ParameterServerStrategy",
    }
)
"""Strategies that make variables in several places, or may."""
SYNCHRONOUS = SEVERAL_REPLICAS - {"ParameterServerStrategy"}
"""Those of which every replica takes its part of each batch."""
MIRRORED = frozenset({"MirroredStrategy", "MultiWorkerMirroredStrategy"})


@lru_cache(maxsize=8192)
def canonical(name: str) -> str:
    """The one spelling of a dotted name: ``tensorflow.keras.layers`` is ``keras.layers``."""
    for prefix, replacement in _PREFIXES:
        if name == prefix or name.startswith(f"{prefix}."):
            return canonical(replacement + name[len(prefix) :])
    return name


@lru_cache(maxsize=8192)
def kind_of(name: str) -> Kind:
    """What calling a canonical name gives."""
    if name in _MODELS:
        return Kind.MODEL
    for kind, pattern in _PATTERNS:
        if pattern.match(name):
            return kind
    return Kind.HARMLESS if name.partition(".")[0] in _HARMLESS_ROOTS else Kind.UNKNOWN


@lru_cache(maxsize=64)
def strategy_kind(name: str) -> str:
    """The class of a strategy by its canonical name: ``MirroredStrategy``."""
    return name.rpartition(".")[2].removesuffix("V2")


_CLASSES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.MODEL, re.compile(r"keras\.(models\.|engine\.training\.)?(Model|Sequential)$")),
    *(pair for pair in _PATTERNS if pair[0] in {Kind.LAYER, Kind.OPTIMIZER, Kind.METRIC}),
    (Kind.LAYER, re.compile(r"keras\.Layer$")),
)


@lru_cache(maxsize=1024)
def class_kind(base: str) -> Kind:
    """What an instance of a class that derives from an external class is."""
    for kind, pattern in _CLASSES:
        if pattern.match(base):
            return kind
    return Kind.HARMLESS if base.partition(".")[0] in _HARMLESS_ROOTS else Kind.UNKNOWN
