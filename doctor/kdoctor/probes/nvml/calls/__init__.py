"""Which NVML call reads which fact, and how its result is converted. For the processes that call NVML only.

Source: https://docs.nvidia.com/deploy/nvml-api/ for calls, units, field ids and the meaning of return codes.
"""
