from helpers.cases import cases
from kdoctor.text.subjects import gpu_index, name_subjects

GPU_2, GPU_5 = "GPU 2 (0000:4c:00.0)", "GPU 5 (0000:9b:00.0)"


@cases(
    ([GPU_2], GPU_2),
    ([GPU_2, GPU_5], "GPU 2, 5"),
    (["GPU 1", "GPU 2", "GPU 3", "GPU 0"], "GPU 0-3"),
    (["GPU 10", "GPU 9"], "GPU 9-10"),
    (["a", "b", "a"], "a, b"),
    (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
    (["GPU 0", "memory"], "GPU 0, memory"),
    (["GPU 0 - GPU 1"], "GPU 0 - GPU 1"),
    (["GPU 0 - GPU 2", "GPU 1 - GPU 2"], "GPU 0 - GPU 2, GPU 1 - GPU 2"),
    (["GPU 0 - GPU 2", "GPU 1 - GPU 2", "GPU 2 - GPU 12"], "3 pairs with GPU 2"),
    (["GPU 0 - GPU 1", "GPU 0 - GPU 2", "GPU 1 - GPU 2"], "3 pairs of GPUs"),
    (["GPU 0 - GPU 1", "GPU 0 - GPU 2", "GPU 0"], "GPU 0 - GPU 1, GPU 0 - GPU 2, GPU 0"),
)
def test_subjects_are_named_in_short(subjects: list[str], shown: str) -> None:
    assert name_subjects(subjects) == shown


@cases((GPU_2, 2), ("GPU 12", 12), ("GPUs", None), ("GPU 0 - GPU 1", None), ("memory of GPU 1", None))
def test_subject_names_a_single_gpu(subject: str, index: int | None) -> None:
    assert gpu_index(subject) == index
