"""Facts about the user's model and data (``kdoctor check --model --data``, ``kdoctor.preflight``)."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from kdoctor.facts.bounds import Reason
from kdoctor.records import record

JobPart = Literal["script", "model", "data", "arguments of fit"]
Place = Literal["scope", "outside", "another strategy"]
"""Where an object was made: in the scope of the examined strategy, in no scope, or in another strategy's."""


@record
class JobProblem:
    """Why the model or the data could not be examined."""

    part: JobPart
    message: str
    """One sentence that names the callable or the object."""
    raised: bool = True
    """Whether the job's code raised an error; False if it is missing, or made something else."""
    fix: str = ""
    """What to do, if that is neither to reproduce the error nor to make what is expected."""


@record
class JobModel:
    """The model before any training."""

    name: str
    """Its class."""
    made_in: Place
    built: bool
    """Whether its variables exist; if not, ``fit`` makes them."""
    compiled: bool
    compiled_in: Place | None = None
    """Where its optimizer was made; None if it has none."""
    trainable: int = 0
    mirrored: int = 0
    """Number of trainable variables with a copy on the device of every replica."""
    not_mirrored: tuple[str, ...] = ()
    normalisations: tuple[str, ...] = ()
    """BatchNormalization layers that train on the moments of one replica's share."""
    optimizer: str | None = None
    learning_rate: float | None = None
    """None if a schedule sets it."""
    default_learning_rate: float | None = None
    """The default of the optimizer's class."""
    schedule: str | None = None
    """Class of the learning rate schedule."""
    scheduled_steps: int | None = None
    """Steps of the training, as far as they are known; None if there is no schedule, or none are known."""
    zero_from: int | None = None
    """A step from which the schedule gives 0 until the last tenth of them; None if it does not."""
    keras: str | None = None
    """Package and version of the model's Keras: ``keras 3.15.1``, ``tf_keras 2.21.0``."""
    clipping: tuple[str, ...] | None = None
    """How the optimizer clips gradients: ``clipnorm=1``; empty if it does not, None if it does not report it."""
    steps_per_execution: int | None = None
    """None if ``compile`` does not report a number."""
    options: Mapping[str, str] | None = None
    """Options of ``compile`` and the optimizer that Keras implements separately for replicas; None if not read."""
    random_layers: tuple[str, ...] | None = None
    """Layers that draw random numbers during training; None if the layers are not known before the first batch."""
    own_random_layers: tuple[str, ...] = ()
    """Those whose class is not of Keras."""


@record
class JobData:
    """The data, read without changing the user's object."""

    kind: Literal["tf.data", "PyDataset", "arrays", "generator"]
    unread: Reason = None
    """Why the data was not read: reading would use it up."""
    problem: Reason = None
    """The problem with its elements: there are none, they are ragged, or reading them raises."""
    endless: bool | None = None
    """Whether the data is infinite; None if unknown."""
    batches: int | None = None
    """Batches per epoch; None if they were not all counted."""
    steps_per_epoch: int | None = None
    """The ``steps_per_epoch`` that the user passes to ``fit``."""
    batch: int | None = None
    """Examples in the first batch."""
    parts: tuple[int, ...] = ()
    """The different numbers of rows of its parts, in ascending order."""
    final_batch: int | None = None
    """Examples in the last one."""
    full_batches_only: bool | None = None
    """Whether a short final batch is impossible (``drop_remainder=True``)."""
    prefetched: bool | None = None
    """Whether the pipeline ends in a prefetch; None for other data than ``tf.data``."""
    seen: int = 0
    """Batches that were read, of which the unusual ones are trained, too."""
    nonfinite: Reason = None
    """The first of them that holds NaN or infinity, such as ``batch 16``."""
    seconds_per_batch: float | None = None
    """Seconds per batch of the input pipeline, after the first batch."""


@record
class JobMemory:
    """Memory of one GPU."""

    device: str
    peak_bytes: int
    """Peak memory in use by TensorFlow."""
    limit_bytes: int
    """Memory that TensorFlow may use."""


Logs = Mapping[str, float | None]
"""What ``fit`` or ``evaluate`` reports, by name; None for NaN and infinity."""


@record
class JobOption:
    """An option of ``compile`` or of the optimizer, whose effect was measured by training without it."""

    name: str
    """``clipping``, ``steps_per_execution``, ..."""
    value: str
    """As the job has it: ``clipnorm=1``."""
    problem: Reason = None
    """The error with it; without it, the job trains."""
    effect: float | None = None
    """How far it moves the weights of one device, as a difference from a training without it."""
    deviation: float | None = None
    """Difference of the replicas from one device with it; None if it had no effect in these steps."""
    without: float | None = None
    """Difference of the replicas from one device without it."""


@record
class JobComparison:
    """The job's steps with its own optimizer, on all replicas and on one device. Random layers run as at inference."""

    optimizer: str
    without: tuple[str, ...] = ()
    """Options that were left out, because the job fails or differs with them."""
    not_compared: Reason = None
    """Why the weights were not compared."""
    deviation: float | None = None
    """Root mean square difference of a variable from one device's, relative to the change of the variable there, or to
    a tenth of the largest change of its kind. The largest one of the variables that rounding does not decide."""
    noise: float | None = None
    """The largest difference that another order of the examples in a batch makes on one device."""
    rounded: tuple[str, ...] = ()
    """Variables whose difference is explained by rounding, at most six."""
    rounded_share: float = 0.0
    """The share of the weights in those of them that differ by more than a tenth of their way."""
    precise: bool = False
    """Whether the copies computed in float64, because the weights differed in float32."""
    logs: Logs = field(default_factory=dict)
    """What ``fit`` reports on all replicas."""
    reference_logs: Logs = field(default_factory=dict)
    reordered_logs: Logs = field(default_factory=dict)
    """The same on one device, and there with another order of the examples."""


@record
class JobEvaluation:
    """``evaluate`` with equal weights on all replicas and on one device."""

    final_batch: int
    """Examples in the last batch."""
    last_bit: float = 0.0
    """The relative precision of ``bfloat16`` or ``float16``, if a layer computes in it."""
    problem: Reason = None
    """The error on all replicas."""
    logs: Logs = field(default_factory=dict)
    reference: Logs = field(default_factory=dict)
    reordered: Logs = field(default_factory=dict)
    """As in ``JobComparison``."""


@record
class JobTraining:
    """A few steps of copies of the model on all replicas, and of other copies on one device."""

    steps: int
    not_run: Reason = None
    """Why nothing was trained."""
    problem: Reason = None
    """The error that the training on the replicas raised."""
    ended_by: Reason = None
    """The error of a callback of Keras, whose hooks are called for two epochs."""
    trains_alone: bool | None = None
    """Whether one device takes these steps without an error; None if that is not known."""
    trains_share: bool | None = None
    """Whether one device takes them with the batches that one of the replicas gets; None if that is not known."""
    raised_before_steps: bool = False
    """Whether Keras raised it when it called the model before the first step, as it does under a strategy only."""
    options: tuple[JobOption, ...] = ()
    """Options whose effect was measured."""
    options_when_built: Mapping[str, str] = field(default_factory=dict)
    """Those of layers that the model makes when it is built, in the form of ``JobModel.options``."""
    examples: int | None = None
    """Examples in the first batches of the data, as the job gives it to ``fit``; None if batches differ in size."""
    examples_trained: int | None = None
    """How many of them one epoch trained on all replicas."""
    examples_problem: Reason = None
    """The error that this epoch raised."""
    examples_unread: Reason = None
    """Why there was no such epoch."""
    final_problem: Reason = None
    """The error of a step with as many examples as the final batch has."""
    final_nonfinite: tuple[str, ...] | None = None
    """What was NaN or infinite after it, the loss or variables; None if it was not taken."""
    odd_problem: Reason = None
    """The error of a step with a batch whose shapes differ from those of the first ones."""
    of_whole_batch: Literal["outputs", "layers", "loss", "step"] | None = None
    """What does not follow from the shares of a batch, if the weights differ: the outputs of an example, what layers
    add to the loss, the rest of it, or what an own ``train_step`` does."""
    of_one_replica: tuple[str, ...] = ()
    """Variables that differ between the replicas, and are read and saved as those of one, at most six."""
    own_losses: tuple[float | None, ...] = ()
    """Loss after each execution with the job's optimizer, on all replicas."""
    nonfinite: tuple[str, ...] = ()
    """Variables that held a NaN or an infinity after those steps."""
    frozen: bool = False
    """Whether the ``train_step`` of Keras has no variable to train."""
    unmoved: tuple[str, ...] | None = None
    """Trainable variables that those steps did not change; None if they may collect their gradients only."""
    read_probabilities: tuple[str, ...] | None = None
    """Losses that read probabilities; None if what they get was not seen."""
    not_probabilities: Reason = None
    """Which of them gets something else."""
    step_s: float | None = None
    """Median seconds of an execution after the first, with the job's optimizer."""
    rows: int | None = None
    """Examples of each step of the comparisons, if one device had no memory for the job's batch."""
    own: JobComparison | None = None
    """None if the job was not compared with its own optimizer."""
    scale_hidden: Reason = None
    """Why only SGD shows a gradient too large by a factor; empty if the job's optimizer does, None if unknown."""
    not_compared: Reason = None
    """Why the weights were not compared with one device, at least not with SGD."""
    losses: tuple[float | None, ...] = ()
    """Loss after each step with SGD, on all replicas."""
    reference_losses: tuple[float | None, ...] = ()
    """Loss after each step with SGD, on one device."""
    deviation: float | None = None
    """With SGD: the largest difference of a weight from one device's, relative to the largest change of its variable
    there, or to a tenth of the largest change of its kind."""
    precise: bool = False
    """Whether these copies computed in float64, too."""
    noise: float | None = None
    """The same between two orders of the examples on one device, if measured; more than rounding means randomness."""
    stretch: float | None = None
    """With SGD: how many times as far the weights moved as on one device, in the same direction. Gradients that are
    summed over R replicas instead of averaged make it about R."""
    stretch_noise: float | None = None
    """The same for another order of the examples on one device, if measured: about 1."""
    stilled: tuple[str, ...] = ()
    """Layers with random numbers, which run as at inference in the comparisons. Layers of the job's own classes without
    a generator of Keras are among them if the weights differed while they drew."""
    equal_draws: tuple[str, ...] = ()
    """Random layers that were called on every replica and drew the same numbers on two of them."""
    different_draws: tuple[str, ...] = ()
    """Random layers that drew different numbers on every replica."""
    draws_alike: bool | None = None
    """Whether all numbers that steps draw with ``tf.random`` are equal on two replicas; None if none were seen."""
    numpy_draws: bool = False
    """Whether NumPy draws numbers when a step is traced, so that they are the same in every step."""
    undrawn: Mapping[str, str] = field(default_factory=dict)
    """Random layers that were not measured, and why."""
    evaluations: tuple[JobEvaluation, ...] = ()
    evaluate_raises: str = ""
    """The error of ``evaluate`` on one device, such as that of a model which only defines ``train_step``."""
    memory: tuple[JobMemory, ...] = ()
    """Empty if no replica is on a GPU."""


@record
class JobSave:
    """A save after the training, tried with a small model: the first call that fails, or else that works."""

    place: str
    """``train.py:12``, or ``train.ipynb:cell 3:12``."""
    error: str = ""
    """That call, and what it will raise; empty if it works."""


@record
class JobFit:
    """The call of ``fit`` at which a script is examined."""

    number: int
    """The first one is 1."""
    place: str
    """``train.py:9``, or ``train.ipynb:cell 3:9``."""
    others: tuple[str, ...] = ()
    """Where that file has other calls that train models of Keras."""
    history: tuple[str, ...] = ()
    """Numbers of its history that what follows reads."""
    save: JobSave | None = None


@record
class JobStep:
    """The first step of the script's training loop, and the same examples on one device."""

    name: str
    """The function that ``strategy.run`` gets."""
    of_keras: bool = False
    """Whether ``train_on_batch`` calls it."""
    rows: tuple[int, ...] = ()
    """Examples of each replica; empty if they were not seen, or all are the same."""
    alike: bool = False
    """Whether all replicas got the same tensors."""
    unseen: str = ""
    """What the step got whose examples are not seen, such as an iterator; empty if they are."""
    updated: int = 0
    """Variables that the optimizer updated."""
    sums: int = 0
    """How often the step adds up their gradients over the replicas."""
    save: JobSave | None = None
    different: tuple[str, ...] = ()
    """Trained variables that differ between the replicas after the step, at most six."""
    nonfinite: tuple[str, ...] = ()
    """Those that held a NaN or an infinity."""
    not_compared: Reason = None
    """Why the gradients were not compared with one device's."""
    stretch: float | None = None
    """How many times as long the gradient is as the one device's, along that."""
    stretches: tuple[float, ...] = ()
    """The same of each variable whose gradient has the direction of the one device's and is not random."""
    stretch_noise: float | None = None
    """How much longer another step of one device with equal examples makes it."""
    deviation: float | None = None
    """The size of their difference, relative to the one device's."""
    of_shares: float | None = None
    """The same from the sum of those that one device computes from each replica's share, as if both were as long."""
    of_whole: float | None = None
    """The same from those that it computes from all at once."""
    noise: float | None = None
    """The same between two steps of one device with equal examples."""


@record
class JobGpus:
    """The GPUs that the process of the job could train on."""

    on_bus: int | None
    """NVIDIA GPUs on the PCI bus; None if it cannot be read."""
    listed: int
    """GPUs that TensorFlow lists."""
    mask: Reason
    """``CUDA_VISIBLE_DEVICES``, if it is set."""
    is_distributed: bool
    """Whether the job has a strategy that is not TensorFlow's default."""


@record
class JobRun:
    """The examination of the job."""

    gpus: JobGpus | None = None
    """None if kdoctor chose the replicas."""
    strategy: Reason = None
    """The class of the job's strategy, in place of which it gets the examination's; empty if a script makes none."""
    devices: int | None = None
    """The number of devices that it names or makes visible, if it does."""
    workers: int | None = None
    """Workers of the cluster of a strategy for several, if one is named."""
    problem: JobProblem | None = None
    fit: JobFit | None = None
    """None if functions are named, and before the script came to it."""
    model: JobModel | None = None
    data: JobData | None = None
    fit_arguments: tuple[str, ...] = ()
    """Other arguments of ``fit`` that the copies are trained with."""
    monitored: Mapping[str, str] | None = None
    """The class of the callback that monitors each number; None if own callbacks may add numbers."""
    validation_unread: Reason = None
    """Why ``validation_data`` was not read, so that the copies have none."""
    training: JobTraining | None = None
    step: JobStep | None = None
    """None if the script trains with ``fit``."""
