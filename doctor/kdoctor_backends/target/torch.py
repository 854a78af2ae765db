"""Trainings with Keras 3 on torch: a process for each rank, which communicate over 127.0.0.1 with gloo."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from kdoctor_target.runner.case import Case
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, Batches, Reference
from kdoctor_target.training.workers import Cluster, Facts, Task, note_workers

MOST_RANKS = 4
Function = Callable[[Case, int], Any]
"""What a rank does with its case and its number; returns the model."""


class Loop(NamedTuple):
    """How a loop differs from that of the Keras guide with plain SGD."""

    optimizer: str = "SGD"
    """A class of ``torch.optim``."""
    learning_rate: float = LEARNING_RATE
    options: Optional[Dict[str, Any]] = None
    """Further arguments of the optimizer."""
    of_keras: bool = False
    """Whether the optimizer is a class of ``keras.optimizers`` instead."""
    clip: Optional[float] = None
    """Largest norm of all gradients together, clipped after ``backward``."""
    together: int = 1
    """Steps whose gradients are added up before an update."""


def require(case: Case) -> int:
    """The number of ranks.

    Raises:
        NotHere: Keras uses another backend, or the trainings are to use GPUs, for which this is not tested.
    """
    import keras

    backend = getattr(getattr(keras, "backend", None), "backend", lambda: "tensorflow")()
    if backend != "torch":
        case.skip(f"Keras uses the {backend} backend")
    if case.devices_kind != "cpu":
        case.skip("Keras on torch is trained on the CPU only")
    return max(2, min(case.replicas or 2, MOST_RANKS))


def batches_of(data: Batches, rank: int, ranks: int) -> Iterator[Tuple[Any, Any]]:
    """The rank's part of each global batch, as a distributed sampler deals the examples."""
    for start in range(0, len(data.inputs), data.global_batch):
        part = slice(start + rank, min(start + data.global_batch, len(data.inputs)), ranks)
        yield data.inputs[part], data.targets[part]


def train_loop(  # noqa: PLR0913 - a loop and its place
    case: Case,
    model: Any,
    data: Batches,
    rank: int = 0,
    ranks: int = 1,
    *,
    loop: Optional[Loop] = None,
    metrics: Sequence[Any] = (),
) -> List[float]:
    """The loop of the Keras guide, by default with plain SGD; returns the mean loss of each epoch.

    The metrics get the predictions before each step, as in ``fit``.
    """
    import torch

    loop = loop or Loop()
    update = _updates(model, loop)
    compute = torch.nn.MSELoss()
    losses = []
    steps = 0
    for _ in range(EPOCHS):
        epoch = []
        for inputs, targets in batches_of(data, rank, ranks):
            case.phase(f"step {steps + 1}" if steps else "first step")
            outputs = model(torch.from_numpy(inputs), training=True)
            for metric in metrics:
                metric.update_state(targets, outputs.detach())
            loss = compute(outputs, torch.from_numpy(targets))
            (loss / loop.together).backward()
            epoch.append(float(loss.detach()))
            steps += 1
            if steps % loop.together == 0:
                update()
            case.note(steps=steps)
        losses.append(float(np.mean(epoch)))
    return losses


def _updates(model: Any, loop: Loop) -> Callable[[], None]:
    """A function that moves the weights by the gradients, then clears these."""
    import torch

    if loop.of_keras:
        import keras

        of_keras = getattr(keras.optimizers, loop.optimizer)(loop.learning_rate, **(loop.options or {}))
        variables = getattr(model, "module", model).trainable_variables

        def apply() -> None:
            with torch.no_grad():
                of_keras.apply([variable.value.grad for variable in variables], variables)
            model.zero_grad()

        return apply
    optimizer = getattr(torch.optim, loop.optimizer)(model.parameters(), lr=loop.learning_rate, **(loop.options or {}))

    def step() -> None:
        if loop.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), loop.clip)
        optimizer.step()
        optimizer.zero_grad()

    return step


def add_up(metrics: Sequence[Any]) -> None:
    """Add up the counts of these metrics over the ranks. They must be sums, as those of F1 and top-k accuracy are."""
    import torch.distributed

    for metric in metrics:
        for variable in metric.variables:
            torch.distributed.all_reduce(variable.value.data)


def train_reference(
    case: Case, model: Any, data: Batches, loop: Optional[Loop] = None, metrics: Sequence[Any] = ()
) -> Reference:
    """Train on one device, with the same initial weights and the same global batches."""
    case.phase("reference")
    losses = train_loop(case, model, data, loop=loop, metrics=metrics)
    case.note(reference_losses=losses)
    return Reference(losses, weights_of(model))


def weights_of(model: Any) -> List[Any]:
    """The model's weights as arrays, the trainable ones first."""
    return [one.value.detach().numpy().copy() for one in (*model.trainable_variables, *model.non_trainable_variables)]


def run_ranks(case: Case, ranks: int, function: Function, patience_s: float = 0.0) -> List[Facts]:
    """Run the function in every rank. Each leaves its weights for :func:`left_weights`."""
    case.phase("strategy")
    stem = str(case.stem)
    cluster = Cluster(case, rank=ranks)

    def task(task_case: Case, me: Task) -> None:
        import torch
        import torch.distributed

        torch.set_num_threads(1)
        task_case.phase("strategy")
        torch.distributed.init_process_group(
            "gloo", init_method=f"tcp://{cluster.addresses['rank'][0]}", rank=me.number, world_size=ranks
        )
        model = function(task_case, me.number)
        task_case.phase("inspect")
        np.savez(f"{stem}.{me.number}.npz", *weights_of(model))

    try:
        cluster.start_all([Task("rank", index) for index in range(ranks)], task, with_config=False)
        ended = cluster.wait(patience_s or 0.7 * case.deadline_s, grace_s=None if patience_s else 10.0)
    finally:
        cluster.end()
    note_workers(case, ended)
    return ended


def left_weights(case: Case, ranks: int) -> List[List[Any]]:
    """The weights that each rank left."""
    paths = [Path(f"{case.stem}.{rank}.npz") for rank in range(ranks)]
    return [list(np.load(path).values()) for path in paths if path.exists()]


def largest_difference(weights: List[Any], others: List[Any]) -> float:
    """The largest difference of any weight."""
    return max(float(np.max(np.abs(one - other))) for one, other in zip(weights, others))


def compare(case: Case, ranks: int, reference: Reference, trainable: int, losses: List[List[float]]) -> None:
    """Note how the weights of the ranks, and their mean losses, compare with those of one device.

    Measure: ``statistics differ``, the largest difference of a weight that is not trained between two ranks.
    """
    case.phase("inspect")
    held = left_weights(case, ranks)
    count = trainable
    nonfinite = [str(index) for index, weight in enumerate(held[0]) if not np.isfinite(weight).all()]
    agree = all(largest_difference(held[0][:count], other[:count]) == 0.0 for other in held[1:])
    if len(held[0]) > count:
        apart = max(largest_difference(held[0][count:], other[count:]) for other in held[1:])
        case.measure({"statistics differ": apart})
    case.note(
        weights={"variables": count, "mirrored": count, "nonfinite": nonfinite, "replicas_agree": agree},
        weight_deviation=largest_difference(held[0], reference.weights),
        losses=[float(np.mean(epoch)) for epoch in zip(*losses)],
    )
