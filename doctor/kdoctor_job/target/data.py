"""The job's data, read through a separate view, so that its state stays the same."""

from __future__ import annotations

import copy
import itertools
import time
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_job.target.epoch import Epoch
from kdoctor_job.target.functions import one_shot
from kdoctor_job.target.parts import PartError, describe, describe_kind
from kdoctor_job.target.unusual import Unusual

COUNT_S = 3.0
"""Seconds for reading the batches; for longer epochs, the final batch is derived from the pipeline if possible."""
DEFAULT_BATCH = 32
"""The batch size of ``fit`` for arrays."""
ENDLESS_BATCHES = 2**31

Facts = Dict[str, Any]


class Data:
    """The data, whatever its form."""

    def __init__(self, value: Any, *, own: bool, batch_size: Optional[int], kept: bool = True) -> None:
        """Find out the kind of data.

        Args:
            value: the user's object, or the return value of the user's callable.
            own: whether it was made for kdoctor, so that it may be consumed.
            batch_size: of arrays.
            kept: whether the job goes on with it, so that reading it may not advance its shuffling.

        Raises:
            PartError: ``fit`` cannot train on it.
        """
        self._given, self._value = value, _changed(value, lambda dataset: dataset)
        self.kind = _kind(self._value)
        self._own, self._kept = own, kept and not own
        self._batch_size = batch_size or DEFAULT_BATCH
        self.full: List[Any] = []
        """The first batches of full size, as ``examine`` read them, and unusual ones in place of the last of these."""
        self.most_rows = 0
        """Of the largest part of a batch that it read."""
        self._sizes: List[int] = []
        self._index, self.unusual = 0, Unusual()
        self._steps_per_epoch: Optional[int] = None

    def examine(self, steps: int, steps_per_epoch: Optional[int]) -> Facts:
        """Read the first batches and find out about the rest."""
        facts: Facts = {"kind": self.kind, "steps_per_epoch": steps_per_epoch}
        self._steps_per_epoch = steps_per_epoch
        if isinstance(self._value, tf.distribute.DistributedDataset):
            reason = "each replica has its own batches"
            return dict(facts, unread=f"{reason}: pass a function that makes a tf.data.Dataset of global batches")
        if self.kind == "tf.data":
            facts["prefetched"] = _is_prefetched(self._value)
        try:
            batches = self._in_order(self._batches())
        except _UsesUp as reason:
            return dict(facts, unread=str(reason))
        try:
            self._read(batches, steps, facts)
        except _Misshapen as problem:
            facts["problem"] = str(problem)
        except Exception as error:
            facts["problem"] = f"reading batch {self._index + 1} raised {describe(error)}"
        finally:
            batches.close()
        return facts

    def epoch(self, fresh: Callable[[], Any], steps_per_epoch: Optional[int] = None) -> Epoch:
        """The batches that ``examine`` read first, in the form in which the job has them.

        Args:
            fresh: makes new data.
            steps_per_epoch: steps of each of several epochs that go on in the same data.
        """
        value = fresh() if self._own else self._given
        if self.kind == "tf.data" and self._kept:
            value = _changed(value, _view, again=True)
        limit = steps_per_epoch or self._steps_per_epoch
        sizes = self._sizes[:limit]
        more = {"batch_size": self._batch_size} if self.kind == "arrays" else {}
        is_regular = len(set(sizes[:-1])) <= 1 and sizes[-1] <= sizes[0]
        known = sum(sizes) if is_regular or self.kind == "PyDataset" else None
        if limit is not None:
            return Epoch(value, {**more, "steps_per_epoch": len(sizes)}, lambda: known)
        if self.kind == "generator":
            return _first_of_generator(value, len(sizes))
        if self.kind == "arrays":
            value = tf.nest.map_structure(lambda leaf: leaf[: sum(sizes)], value)
        elif self.kind == "tf.data":
            value = _changed(value, lambda dataset: dataset.take(len(sizes)), again=True)
        else:
            value = _first_items(value, len(sizes))
        return Epoch(value, more, lambda: known)

    @property
    def is_static(self) -> bool:
        """Whether the batch size is part of the type of what ``epoch`` returns, in ``fit``."""
        if self.kind == "arrays":
            return len(set(self._sizes)) == 1
        return self.kind == "tf.data" and _static_batch(self._value)

    def _batches(self) -> Iterator[Any]:
        if self.kind == "tf.data":
            name = one_shot(_chain(self._value), is_new=self._own)
            if name:
                raise _UsesUp(f"its generator reads {name}, which can be read only once: make it in the generator")
            return iter(_view(self._value) if self._kept else self._value)
        if self.kind == "PyDataset":
            return _items(self._value)
        if self.kind == "arrays":
            return _slices(self._value, self._batch_size)
        if not self._own:
            raise _UsesUp(
                "a generator can be read only once: use Dataset.from_generator, or name its function (--data)"
            )
        return iter(self._value)

    def _read(self, batches: Iterator[Any], steps: int, facts: Facts) -> None:
        sizes, parts = self._sizes, []
        began, first_at = time.perf_counter(), 0.0
        for batch in itertools.islice(batches, max(1, steps)):
            parts.append(_sizes(batch))
            sizes.append(parts[-1][0])
            self.most_rows = max(self.most_rows, *parts[-1])
            first_at = first_at or time.perf_counter()
            if parts[-1] == parts[0]:
                self.full.append(self._look(batch, is_first=True))
        if not sizes:
            raise _Misshapen("it is empty, without a batch to train on")
        if len(sizes) > 1:
            facts["seconds_per_batch"] = (time.perf_counter() - first_at) / (len(sizes) - 1)
        facts.update(batch=sizes[0], parts=sorted(set(parts[0])), **self._rest(batches, sizes, began))
        facts.update(seen=self.unusual.seen, nonfinite=self.unusual.nonfinite)
        later = self.unusual.batches[: max(0, steps - 1)]
        self.full = [*self.full[: steps - len(later)], *later]

    def _in_order(self, batches: Iterator[Any]) -> Generator[Any, None, None]:
        try:
            for batch in batches:
                yield batch
                self._index += 1
        finally:
            close = getattr(batches, "close", None)
            if close:
                close()

    def _in_any_order(self, read: int, length: int) -> Iterator[Any]:
        """The last item of a PyDataset, and then those behind the first ones without an order."""
        others = read + np.random.RandomState(0).permutation(max(0, length - 1 - read))
        for index in [*range(max(read, length - 1), length), *others]:
            self._index = int(index)
            yield self._value[self._index]

    def _look(self, batch: Any, *, is_first: bool = False) -> Any:
        """The batch as arrays, after a look at what they hold."""
        arrays = tf.nest.map_structure(np.asarray, _plain(batch))
        self.unusual.look(f"batch {self._index + 1}", tf.nest.flatten(arrays), arrays, is_first=is_first)
        return arrays

    def _look_further(self, batches: Iterator[Any], most: Optional[int], began: float) -> Tuple[int, bool]:
        """The rows of the last batch that is read behind the first ones, and whether these are all."""
        last_index, last = self._index, self._sizes[-1]
        for batch in itertools.islice(batches, most):
            rows = _sizes(batch)[0]
            self._look(batch)
            if self._index > last_index:
                last_index, last = self._index, rows
            if time.perf_counter() - began > COUNT_S:
                return last, False
        return last, True

    def _rest(self, batches: Iterator[Any], sizes: List[int], began: float) -> Facts:
        length = self._length()
        if length == ENDLESS_BATCHES:
            self._look_further(batches, max(0, (self._steps_per_epoch or 0) - len(sizes)), began)
            return {
                "endless": True,
                "full_batches_only": _static_batch(self._value) if self.kind == "tf.data" else None,
            }
        if self.kind == "PyDataset" and length is not None:
            final, _ = self._look_further(self._in_any_order(len(sizes), length), None, began)
            return {"endless": False, "batches": length, "final_batch": final}
        final, is_all = self._look_further(batches, None, began)
        if is_all:
            only = True if self.kind == "tf.data" and _static_batch(self._value) else None
            return {"endless": False, "batches": self._index, "final_batch": final, "full_batches_only": only}
        known: Facts = {"endless": None if length is None else False, "batches": length}
        if self.kind == "tf.data" and _static_batch(self._value):
            known["full_batches_only"] = True
        elif self.kind == "tf.data":
            known["final_batch"] = _final_by_pipeline(self._value)
        return known

    def _length(self) -> Optional[int]:
        """Number of batches, ``ENDLESS_BATCHES``, or None if it is unknown before they are read."""
        if self.kind == "tf.data":
            length = int(self._value.cardinality().numpy())
            unknown, endless = tf.data.UNKNOWN_CARDINALITY, tf.data.INFINITE_CARDINALITY
            return ENDLESS_BATCHES if length == endless else None if length == unknown else length
        if self.kind == "PyDataset":
            counted = _items_of(self._value)
            return ENDLESS_BATCHES if counted is None else counted
        return None


class _UsesUp(Exception):  # noqa: N818 - a reason, and its name is never shown
    """Reading would change the state of the user's object."""


class _Misshapen(Exception):  # noqa: N818 - a fact about the data, and its name is never shown
    """``fit`` on replicas cannot train on an element."""


def _kind(value: Any) -> str:
    if isinstance(value, (tf.data.Dataset, tf.distribute.DistributedDataset)):
        return "tf.data"
    if any(base.__name__ in ("PyDataset", "Sequence") and "keras" in base.__module__ for base in type(value).__mro__):
        return "PyDataset"
    if isinstance(value, tf.data.Iterator) or hasattr(value, "__next__"):
        return "generator"
    leaves = tf.nest.flatten(value)
    if leaves and all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
        return "arrays"
    wanted = "a tf.data.Dataset, a keras.utils.PyDataset, arrays or a generator"
    raise PartError("data", f"the data is {describe_kind(value)}, expected {wanted}")


def _changed(value: Any, change: Callable[[Any], Any], *, again: bool = False) -> Any:
    """The data after a change; of a distributed dataset its global batches, which are distributed again if asked."""
    original = getattr(value, "_original_dataset", None)
    if original is None:
        return change(value)
    made = change(original)
    return value._strategy.experimental_distribute_dataset(made) if again else made  # noqa: SLF001


def _view(dataset: Any) -> Any:
    """The dataset, or an equal one if iterating over it would advance its shuffling.

    A shuffle that reshuffles takes its next seed from a generator that all iterators of the dataset share.
    """
    if not any(getattr(one, "_reshuffle_each_iteration", False) for one in _chain(dataset)):
        return dataset
    try:
        graph = tf.raw_ops.DatasetToGraphV2(input_dataset=dataset._variant_tensor, external_state_policy=1)  # noqa: SLF001
        variant = tf.raw_ops.DatasetFromGraph(graph_def=_with_own_shuffling(graph.numpy()))
        from tensorflow.python.data.ops import dataset_ops

        return dataset_ops._VariantDataset(variant, dataset.element_spec)  # noqa: SLF001
    except Exception as error:
        reason = f"reading it would advance its shuffling, and it cannot be copied ({describe(error)})"
        raise _UsesUp(f"{reason}: pass a function that makes it") from error


def _with_own_shuffling(graph: bytes) -> bytes:
    """The dataset's graph with a separate seed generator for each shuffle.

    The graph contains the name of the original's generator. If that name does not exist, the shuffle makes a generator
    from its seed.
    """
    definition = tf.compat.v1.GraphDef.FromString(graph)
    shuffles = [node for node in definition.node if "Shuffle" in node.op]
    fed = {source for node in shuffles for source in node.input}
    for number, node in enumerate(definition.node):
        if node.op == "Const" and node.name in fed:
            for handle in node.attr["value"].tensor.resource_handle_val:
                handle.name = f"kdoctor-{time.monotonic_ns()}-{number}"
    serialized: bytes = definition.SerializeToString()
    return serialized


def _chain(dataset: Any) -> Iterator[Any]:
    """The dataset and the datasets that it is made of, the last step first."""
    yield dataset
    for one in dataset._inputs():  # noqa: SLF001 - no public equivalent
        yield from _chain(one)


_TRANSPARENT = ("Options", "Prefetch", "ModelDataset")
_KEEPS_BATCHES = (*_TRANSPARENT, "Map", "Cache")


def _is_prefetched(dataset: Any) -> bool:
    """Whether the pipeline ends in a prefetch, apart from its options."""
    for one in _chain(dataset):
        name = type(one).__name__
        if "Prefetch" in name:
            return True
        if "Options" not in name:
            return False
    return False


def _static_batch(dataset: Any) -> bool:
    """Whether the batch size is part of the data set's type."""
    shapes = [getattr(spec, "shape", None) for spec in tf.nest.flatten(dataset.element_spec)]
    return bool(shapes) and all(shape is not None and shape.rank and shape[0] is not None for shape in shapes)


def _final_by_pipeline(dataset: Any) -> Optional[int]:
    """The size of the final batch, from the number of examples that the ``batch`` step gets."""
    for one in _chain(dataset):
        name = type(one).__name__
        if "BatchDataset" in name and hasattr(one, "_batch_size"):
            examples = int(one._inputs()[0].cardinality().numpy())  # noqa: SLF001 - no public equivalent
            size = int(one._batch_size)  # noqa: SLF001
            return (examples % size or size) if examples > 0 else None
        if not any(part in name for part in _KEEPS_BATCHES):
            return None
    return None


def _items_of(dataset: Any) -> Optional[int]:
    """Number of batches of a PyDataset; None if it is infinite."""
    if hasattr(type(dataset), "__len__"):
        return len(dataset)
    length = dataset.num_batches
    return None if length is None else int(length)


def _items(dataset: Any) -> Iterator[Any]:
    length = _items_of(dataset)
    for index in itertools.count() if length is None else range(length):
        yield dataset[index]


def _first_items(value: Any, length: int) -> Any:
    """A PyDataset of the first items."""
    base: Any = next(kind for kind in type(value).__mro__ if kind.__name__ in ("PyDataset", "Sequence"))

    class First(base):  # type: ignore[misc]  # Keras has no types here
        def __len__(self) -> int:
            return length

        def __getitem__(self, index: int) -> Any:
            return value[index]

    return First()


def read_again(source: Iterator[Any], most: int) -> Callable[[], Iterator[Any]]:
    """A function that makes generators of the same batches, of a generator that nothing else reads.

    Args:
        source: the generator.
        most: how many batches are the same. Others follow, so that they can be counted.
    """
    kept: List[Any] = []

    def batches() -> Iterator[Any]:
        yield from kept
        for batch in source:
            if len(kept) < most:
                kept.append(tf.nest.map_structure(copy.copy, batch))  # it may be changed in place
            yield batch

    return batches


def _first_of_generator(value: Iterator[Any], length: int) -> Epoch:
    """The first batches of a generator, whose examples are counted where they are taken."""
    taken: List[int] = []

    def batches() -> Iterator[Any]:
        for batch in itertools.islice(value, length):
            taken.append(_sizes(batch)[0])
            yield batch

    made = batches()

    def examples() -> int:
        for _ in made:  # what fit left behind
            pass
        return sum(taken)

    return Epoch(made, {}, examples)


def _slices(arrays: Any, size: int) -> Iterator[Any]:
    lengths = {len(leaf) for leaf in tf.nest.flatten(arrays)}
    if len(lengths) > 1:
        raise _Misshapen(f"arrays differ in their number of examples: {', '.join(map(str, sorted(lengths)))}")
    (length,) = lengths
    for start in range(0, length, size):
        yield tf.nest.map_structure(lambda leaf: _in_floatx(leaf[start : start + size]), arrays)  # noqa: B023 - called at once


def _in_floatx(values: Any) -> Any:
    """The values as ``fit`` has those of arrays: real numbers have the type of Keras's variables."""
    array = np.asarray(values)
    return array.astype(tf.keras.backend.floatx()) if np.issubdtype(array.dtype, np.floating) else array


def _sizes(batch: Any) -> List[int]:
    """The rows of each part. They differ if data sets were zipped, or if a part has the edges of graphs."""
    sizes = [_rows(leaf) for leaf in _leaves(batch)]
    if not sizes:
        raise _Misshapen("it has an empty element")
    return sizes


def _leaves(batch: Any) -> Iterator[Any]:
    """The element's parts, except those that are None, as sample weights may be."""
    if isinstance(batch, dict):
        for part in batch.values():
            yield from _leaves(part)
    elif isinstance(batch, tuple) or (isinstance(batch, list) and all(hasattr(part, "shape") for part in batch)):
        for part in batch:
            yield from _leaves(part)
    elif batch is not None:
        yield batch


def _rows(leaf: Any) -> int:
    if isinstance(leaf, (tf.RaggedTensor, tf.SparseTensor)):
        raise _Misshapen(f"its elements are ragged or sparse ({type(leaf).__name__})")
    try:
        array = np.asarray(leaf)
    except ValueError:
        raise _Misshapen("its elements are ragged: rows of a batch differ in length") from None
    if array.dtype == object and not all(isinstance(item, (str, bytes)) for item in array.flat):
        raise _Misshapen("its elements are ragged: rows of a batch differ in length")
    if array.ndim == 0:
        raise _Misshapen("it is not batched: an element is a single number; call .batch(...)")
    return int(array.shape[0])


def _plain(batch: Any) -> Any:
    """The batch without trailing parts that are None, in tuples."""
    if isinstance(batch, dict):
        return {name: _plain(part) for name, part in batch.items()}
    if isinstance(batch, tuple):
        parts = list(batch)
        while parts and parts[-1] is None:
            parts.pop()
        return tuple(_plain(part) for part in parts)
    return batch
