from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, finding
from kdoctor_job.checks.job._options import STATE
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobTraining

_OF_STATISTICS = (
    "Use BatchNormalization(synchronized=True) if no layer adds a loss. Else shuffle the examples: then the difference "
    "is small."
)
_OF_OTHERS = "Create it with aggregation='mean', or assign what the replica context's all_gather returns."


@job_check("job.state", Severity.WARNING, "job.trains", several=True)
def state(training: JobTraining) -> Outcome:
    """What is evaluated and saved is the state of all replicas.

    Why: a variable that each replica changes with its share of a batch has one value per replica. Keras 3 reads and
    saves the moving statistics of BatchNormalization of the first replica; tf_keras takes the mean. On sorted examples,
    a saved model had a loss of 0.622 instead of 0.0124. On shuffled examples the difference is small.
    Remedy: shuffle the data, use BatchNormalization(synchronized=True), or train with tf_keras. If a layer is
    synchronized, Keras 3.15.1 counts what layers add to the loss once for each replica.
    Source: https://keras.io/api/layers/normalization_layers/batch_normalization/
    Failure modes: keras3_moving_statistics
    """
    if not training.of_one_replica:
        return evidence("state of the model", "equal on all replicas, or read as their mean or sum")
    count = len(training.of_one_replica)
    assigned = {name for one in training.options if one.name == STATE for name in one.value.split(", ")}
    are_statistics = all("/moving_" in name for name in training.of_one_replica)
    named = counted(count, "variable") if are_statistics else some(training.of_one_replica)
    return finding(
        "your model",
        f"{some(training.of_one_replica)} differ between the replicas, and are saved from one only",
        "one value, or the mean of all replicas",
        _OF_STATISTICS if are_statistics else _OF_OTHERS,
        brief=f"{named} {'is' if count == 1 else 'are'} saved from one replica only",
        explained_by=("job.options",) if assigned.issuperset(training.of_one_replica) else (),
    )
