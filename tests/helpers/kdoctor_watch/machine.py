"""A job on all GPUs that ``kdoctor.Watch`` sees, for the machines of the tests."""

from helpers.facts.sampling import sampled_gpu, sampling
from helpers.kdoctor_watch.facts import BUSY, watched

WHOLE = (watched(8), sampling(8, *(sampled_gpu(index, series=BUSY) for index in range(8))))
