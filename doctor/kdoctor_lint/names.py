"""What the names of TensorFlow and Keras mean, however they are imported."""

import re
import sys
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

_OF_KERAS = (
    "tensorflow.python.keras", "tensorflow._api.v2.v2.keras", "tensorflow.keras", "tensorflow.compat.v1.keras",
    "tf_keras", "keras.api._v2.keras", "keras.api", "keras.src",
)  # fmt: skip
_PREFIXES = (
    ("tensorflow.compat.v2", "tensorflow"),
    *((name, "keras") for name in _OF_KERAS),
    ("tensorflow.optimizers", "keras.optimizers"),
    ("tensorflow.metrics", "keras.metrics"),
)
_PASSED_ON = re.compile(r"(?!keras\.)\w[\w.]*\.(keras\.(Model|Sequential|Input|(layers|optimizers|models)\.(\w+)))")
"""A name of Keras that another library passes on."""


class Kind(Enum):
    """What calling an external name returns."""

    STRATEGY = "strategy"
    MODEL = "model"
    LOADED = "loaded model"
    INPUT = "input"
    LAYER = "layer"
    OPTIMIZER = "optimizer"
    METRIC = "metric"
    CALLBACK = "callback"
    DATASET = "dataset"
    READY_DATASET = "batched and prefetched dataset"
    TRANSPARENT = "its first argument"
    HARMLESS = "object without variables"
    UNKNOWN = "unknown"


_HARMLESS_ROOTS = sys.stdlib_module_names | {
    "PIL", "absl", "albumentations", "builtins", "cv2", "google", "h5py", "hydra", "jax", "kdoctor", "keras", "librosa",
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
    (Kind.LAYER, re.compile(r"keras\.(Layer|layers\.(\w+\.)*[A-Z]\w*)$")),
    (Kind.OPTIMIZER, re.compile(r"keras\.optimizer(?:s|_v[12])\.(?!.*schedules)(\w+\.)*[A-Z]\w*$")),
    (Kind.OPTIMIZER, re.compile(r"keras\.mixed_precision\.(experimental\.)?LossScaleOptimizer$")),
    (Kind.METRIC, re.compile(r"keras\.metrics\.(\w+\.)*[A-Z]\w*$")),
    (Kind.CALLBACK, re.compile(r"keras\.callbacks\.(\w+\.)*[A-Z]\w*$")),
    (Kind.READY_DATASET, re.compile(r"keras\.(utils|preprocessing)\.(\w+\.)*\w+_dataset_from_(array|directory)$")),
    (Kind.READY_DATASET, re.compile(r"tensorflow\.data\.experimental\.(make_csv|make_batched)\w+$")),
    (Kind.DATASET, re.compile(r"tensorflow\.data\.(experimental\.)?Dataset\.(?!sample|choose)\w+$")),
    (Kind.DATASET, re.compile(r"tensorflow\.data\.(experimental\.)?\w+Dataset$")),
    (Kind.DATASET, re.compile(r"tensorflow_datasets\.load$")),
    (Kind.TRANSPARENT, re.compile(r"(tensorflow\.(function|autograph\.experimental\.do_not_convert))$")),
)
BATCH_NORMALIZATION = re.compile(r"keras\.layers\.(\w+\.)*BatchNormalization$")
NORMALIZED_APPLICATIONS = re.compile(
    r"keras\.applications\.(\w+\.)*(DenseNet|EfficientNet|Inception|MobileNet|NASNet|RegNet|ResNet|Xception)\w*$"
)
"""Models of :mod:`keras.applications` that have BatchNormalization layers."""
WEIGHTLESS = re.compile(
    r"keras\.layers\.(\w+\.)*(Random\w+|Rescaling|Resizing|CenterCrop|AutoContrast|Solarization|CutMix|MixUp|AugMix"
    r"|Dropout|SpatialDropout\dD|Flatten|Reshape|Permute|Activation|ReLU|Softmax|\w+Pool(ing)?\dD|ZeroPadding\dD)$"
)
"""Layers without weights: augmentation, shapes, activations."""
RANDOM = re.compile(
    r"keras\.layers\.(\w+\.)*((Alpha|Gaussian|Spatial)?Dropout(\dD)?|GaussianNoise|Random[A-Z]\w+|CutMix|MixUp|AugMix)$"
)
"""Layers that draw random numbers in training."""
HAS_SLOTS = re.compile(r"keras\.optimizers?(_v[12])?\.(?!.*\blegacy\.)(\w+\.)*(?!(SGD|Optimizer)$)[A-Z]\w*$")
"""Optimizers that always have variables for each variable of the model."""
GRAPH = "tensorflow.function"
EXPORTS: Mapping[str, re.Pattern[str]] = {
    "keras.optimizers": re.compile(r"Ada[a-zA-Z]+|SGD|RMSprop|Nadam|Ftrl|Lion|Lamb|Muon|LossScaleOptimizer"),
    "keras.models": re.compile(r"Model|Sequential|(load|save|clone)_model|model_from_\w+"),
    "keras.callbacks": re.compile(r"(Model|Lambda|Early|CSV|Learning|Reduce|Tensor|Backup|Terminate)[A-Z]\w+"),
    "keras.layers": re.compile(
        r"Input|InputLayer|Layer|Dense|Embedding|Flatten|Reshape|Permute|Lambda|Activation|Rescaling|Resizing|Softmax"
        r"|(Bidirectional|TimeDistributed|Concatenate|Add|Multiply|Average|Dot|Mix[uU]p|CutMix|AugMix)|Random[A-Z]\w+"
        r"|\w*(Conv|Pool|Norm|RNN|LSTM|GRU|Dropout|Noise|Padding|Cropping|UpSampling|ReLU|Attention)\w*"
    ),
}
"""What ``from module import *`` certainly brings, for the modules that scripts import so."""

WORKERS = frozenset({"MultiWorkerMirroredStrategy"})
ALONE = "one worker"  # ``MultiWorkerMirroredStrategy`` in a single process
MIRRORED = WORKERS | {"MirroredStrategy", ALONE}
SYNCHRONOUS = MIRRORED | {"TPUStrategy", "CentralStorageStrategy"}
"""Strategies that divide each batch among their replicas."""
SOME = frozenset({"some"})  # A strategy that the file does not show
SINGLE = frozenset({"OneDeviceStrategy", "default"})  # Strategies with one replica
DEFAULT = frozenset({"default"})  # The strategy outside all scopes, which has one replica
SEVERAL_REPLICAS = SYNCHRONOUS | {"ParameterServerStrategy"}  # Strategies that may create variables on several devices

COUNT = re.compile(
    r"(?:.*_)?(?:(?:num(?:ber)?|n|no)_?(?:of_)?(?:gpus?|devices|replicas|accelerators|tpu_cores|workers|nodes|hosts)"
    r"|(?:gpus?|devices?|replicas?|workers?|nodes?)_(?:count|num)|ngpus?|world_size|gpus|replicas|workers|nodes)",
    re.IGNORECASE,
)
"""Matches the whole of a name for the number of devices or of workers."""
BATCH = re.compile(r"batch_?size|(?<![a-z])bs(?![a-z])", re.IGNORECASE)
WORKER = re.compile("worker|node|host", re.IGNORECASE)
EVALUATION = re.compile(
    r"(?<![a-z])(eval|evaluation|val|valid|validation|test|predict|prediction|infer|inference)(?![a-z])", re.IGNORECASE
)


@lru_cache(maxsize=8192)
def canonical(name: str) -> str:
    """The canonical form of a dotted name: ``tensorflow.keras.layers`` is ``keras.layers``."""
    for prefix, replacement in _PREFIXES:
        if name == prefix or name.startswith(f"{prefix}."):
            return canonical(replacement + name[len(prefix) :])
    passed = _PASSED_ON.fullmatch(name)
    known = passed and (not passed[3] or EXPORTS[f"keras.{passed[3]}"].fullmatch(passed[4]))
    return passed[1] if passed and known else name


@lru_cache(maxsize=8192)
def kind_of(name: str) -> Kind:
    """What calling a canonical name returns, or what an instance of a class derived from it is."""
    if name in _MODELS:
        return Kind.MODEL
    for kind, pattern in _PATTERNS:
        if pattern.match(name):
            return kind
    return Kind.HARMLESS if name.partition(".")[0] in _HARMLESS_ROOTS else Kind.UNKNOWN
