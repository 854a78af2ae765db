from collections import Counter
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus
from kdoctor.model import NotApplicable, Outcome, Remedy, Rollback, Severity
from kdoctor_checks._gpus import DRIVER, answering, choose_gpus, judge, models, not_answering, size, unread


@check("gpu.same-model", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def same_model(gpus: Gpus, *, memory_tolerance: float = 0.02) -> Iterator[Outcome]:
    """All GPUs have the same model, compute capability and memory size.

    Why: replicas of a synchronous strategy wait for each other, so the slowest GPU limits the speed and the smallest
    memory limits the batch. TensorFlow ignores a GPU with far fewer multiprocessors, without an error ("Ignoring
    visible gpu device"). The output of nvidia-smi has no compute capability, and is judged by the name.
    Remedy: hide the odd GPU from the job, or run the job on identical GPUs.
    Sources:
        https://www.tensorflow.org/guide/distributed_training
        https://github.com/tensorflow/tensorflow/issues/32489
    Failure modes: slow_gpu_dropped
    """
    if len(gpus.devices) == 1:
        yield NotApplicable(reason="only one GPU")
        return
    yield from not_answering(gpus)
    read: list[Gpu] = []
    others = ("memory_total_bytes", "compute_capability")
    # nvidia-smi -q prints no capability, and -L no memory, for any GPU. Then different names decide.
    found = answering(gpus)
    unprinted = {name for name in others if all(gpu.errors.get(name, "").startswith("not in ") for gpu in found)}
    if len({gpu.name for gpu in found}) == 1:
        unprinted.discard("memory_total_bytes")
    fields = ("name", *(name for name in others if name not in unprinted))
    for gpu in found:
        if problem := unread(gpu, *fields):
            yield problem
        else:
            read.append(gpu)
    if not read:
        return
    (name, capability), _ = Counter((gpu.name, gpu.compute_capability) for gpu in read).most_common(1)[0]
    peers = [gpu for gpu in read if (gpu.name, gpu.compute_capability) == (name, capability)]
    memory = Counter(gpu.memory_total_bytes or 0 for gpu in peers).most_common(1)[0][0]
    alike = [gpu for gpu in peers if abs((gpu.memory_total_bytes or 0) - memory) <= memory_tolerance * memory]
    remedy = Remedy.configure("Train on the identical GPUs only.", *choose_gpus(alike), look=("nvidia-smi -L",))
    for gpu in read:
        yield judge(
            gpu.subject,
            _describe(gpu.name, gpu.compute_capability, gpu.memory_total_bytes or 0),
            ok=gpu in alike,
            expected=f"{_describe(name, capability, memory)}, as for most GPUs",
            remedy=remedy,
            rollback=Rollback.to("make all GPUs visible again", "unset CUDA_VISIBLE_DEVICES"),
            brief=_brief(gpu, name or "", memory),
            value=models(read),
        )


def _describe(name: str | None, capability: str | None, memory: int) -> str:
    return ", ".join(
        filter(None, (name, capability and f"compute capability {capability}", size(memory) if memory else None))
    )


def _brief(gpu: Gpu, name: str, memory: int) -> str:
    if gpu.name != name:
        return f"{gpu.name}, not {name}"
    found = gpu.memory_total_bytes or 0
    return f"{size(found)} of memory, most have {size(memory)}" if found != memory else "unlike most GPUs"
