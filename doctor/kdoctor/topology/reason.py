"""Why GPUs were chosen, without claims about pairs that are unknown."""

from collections.abc import Iterator

from kdoctor.text.lists import counted
from kdoctor.topology.choice import Choice
from kdoctor.topology.layout import Layout, Link


def reason(layout: Layout, choice: Choice, *, is_recorded: bool = False) -> str:
    """Why these GPUs.

    Args:
        layout: all GPUs.
        choice: the chosen ones.
        is_recorded: whether the facts are from a snapshot, to which more can be added.
    """
    chosen = [place for place in layout.places if place.gpu.index in choice.gpus]
    in_use = _too_few_others(sum(place.gpu.is_in_use() for place in chosen), "in use")
    failing = _too_few_others(sum(place.failing for place in chosen), "failing a check")
    in_mig_mode = _too_few_others(sum(place.in_mig_mode for place in chosen), "in MIG mode") if choice.pairs else ""
    sentences = _sentences(choice, is_recorded=is_recorded) if choice.pairs else (_one_gpu(layout, choice),)
    return " ".join(filter(None, (in_use, failing, in_mig_mode, *(() if in_mig_mode else sentences))))


def _too_few_others(number: int, what: str) -> str:
    of_these = counted(number, "of these GPUs is", "of these GPUs are")
    return f"{of_these} {what}, and too few others are usable." if number else ""


def _one_gpu(layout: Layout, choice: Choice) -> str:
    if choice.sets == 1:
        return "The only GPU." if len(layout.places) == 1 else "The only GPU that is neither lost nor in use."
    (place,) = (place for place in layout.places if place.gpu.index in choice.gpus)
    if place.narrow:
        return f"The first GPU. Every GPU has a narrowed PCIe link; this one runs {place.narrow}."
    return "The first GPU without a narrowed PCIe link."


def _sentences(choice: Choice, *, is_recorded: bool) -> Iterator[str]:
    if choice.unknown:
        yield from _unknown(choice, is_recorded=is_recorded)
    else:
        yield from _known(choice)
    if choice.crossings is None:
        yield "Whether pairs cross NUMA nodes is unknown."
    elif not choice.crossings:
        yield "Same NUMA node."
    else:
        yield f"{counted(choice.crossings, 'pair crosses', 'pairs cross')} NUMA nodes."


def _unknown(choice: Choice, *, is_recorded: bool) -> Iterator[str]:
    """What is not known about these pairs, and what would tell."""
    missing = (
        "add the output of `nvidia-smi topo -m` to the recording (kdoctor snapshot --help)."
        if is_recorded
        else "the driver did not report it."
    )
    is_choice = choice.sets > 1
    if choice.unknown < len(choice.pairs):
        pairs = f"{choice.unknown} of these {counted(len(choice.pairs), 'pair')}"
        yield f"How {pairs} are connected is not known: {missing}"
        if is_choice:
            yield f"Another {counted(choice.replicas, 'GPU')} may be faster."
    elif is_choice:
        guess = f"any {counted(choice.replicas, 'GPU')} are a guess"
        yield f"Which pairs are faster is not known: {missing} Until then, {guess}."
    else:
        yield f"How these GPUs are connected is not known: {missing}"


def _known(choice: Choice) -> Iterator[str]:
    slowest, best = choice.slowest, choice.best
    if slowest is None or best is None:
        return
    unknown = sum(not link.is_known for link in choice.all_pairs)
    is_uniform = all(link.quality == slowest.quality for link in choice.pairs)
    if is_uniform and slowest.quality == best.quality:
        is_best = any(link.quality != best.quality for link in choice.all_pairs if link.is_known)
        rank = ", the best link here" if is_best else ""
        subject = "The only pair" if len(choice.all_pairs) == 1 else "Every pair"
        yield f"{subject} is {slowest.label}{_speed(slowest, ' (', ')')}{rank}."
    else:
        yield f"Slowest pair: {_pair(slowest)}."
        if choice.sets > 1 and not unknown:
            yield f"No other {counted(choice.replicas, 'GPU')} have a faster one."
        if slowest.quality != best.quality:
            yield _compared(slowest, best)
    if unknown:
        total = counted(len(choice.all_pairs), "pair")
        are = "is" if unknown == 1 else "are"
        yield f"Other GPUs may be faster: {unknown} of the {total} of this machine {are} unknown."


def _compared(slowest: Link, best: Link) -> str:
    if slowest.gbs and best.gbs and slowest.gbs < best.gbs:
        return f"That is {slowest.gbs / best.gbs:.0%} of the best pair, {_pair(best)}."
    return f"The best pair, {_pair(best)}, is closer."


def _pair(link: Link) -> str:
    return f"GPU {link.first}-{link.second} ({link.label}{_speed(link, ', ')})"


def _speed(link: Link, before: str, after: str = "") -> str:
    return f"{before}{link.gbs:.0f} GB/s{after}" if link.gbs else ""
