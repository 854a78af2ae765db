"""Dumps to start from, by the name of their format."""

import json
from collections.abc import Mapping

from helpers.kdoctor_recordings.dumps import LOG, LSPCI, NVLINK, TABLE, TOPOLOGY, query, xml

DCGM = {
    "DCGM Diagnostic": {
        "test_categories": [
            {"category": "Hardware", "tests": [{"name": "pcie", "results": [{"gpu_ids": "0,1", "status": "Fail", "warnings": [{"warning": "x", "error_id": 83}]}]}]},
            {"category": "x", "tests": [{"name": "y", "results": [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": 2, "status": "Warn"}], "test_summary": {"status": "Warn"}}]},
        ]
    }
}  # fmt: skip
MESSAGES = """\
Jan 05 14:45:28 n1 systemd[1]: Started nvidia-fabricmanager.service - NVIDIA fabric manager service.
ERROR [1:2] [[Health]] Detected a WARNING in health system Thermal: 'clocks event in GPU 2.'
| Overall Health            | Warning |
| GPU ID: 3                 | Warning |
|                           | PCIe system: Warning - replays |
"""
DCGM_TABLE = """\
Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 4.4.2                                          |
| GPU Device IDs Detected   | 2330, 2330                                     |
|-----  Deployment  --------+------------------------------------------------|
| software                  | Pass                                           |
|                           | GPU0: Fail                                     |
| Warning: GPU0             | Error using CUDA API cudaDeviceGetByPCIBusId   |
|                           |  Check DCGM and system logs for errors.        |
| GPU Memory                | Pass - GPUs: 1, 2                              |
|                           | Fail - GPU: 0                                  |
+---------------------------+------------------------------------------------+
"""
FABRIC = (
    "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id "
    "00000000:86:00.0 physical id 3 port 61\n"
)
CSV = (
    "index, name, pci.bus_id, memory.total [MiB], temperature.gpu, power.draw [W], remapped_rows.failure\n"
    "0, NVIDIA Test 40GB, 00000000:3B:00.0, 40960 MiB, 34, 75.11 W, No\n"
    "1, NVIDIA Test 40GB, 00000000:AF:00.0, 40960 MiB, 35, [N/A], Yes\n"
)
DUMPS: Mapping[str, str] = {
    "nvidia-smi -q": query("3B", "AF"),
    "nvidia-smi -q -x": xml("3B", "AF"),
    "nvidia-smi": TABLE,
    "nvidia-smi topo -m": TOPOLOGY,
    "nvidia-smi topo -p2p": " \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n",
    "nvidia-smi nvlink -s": NVLINK,
    "nvidia-smi --query-gpu": CSV,
    "nvidia-smi's failure": "Unable to determine the device handle for GPU 3: 0000:5E:00.0: Unknown Error\n"
    "Unable to determine the device handle for GPU0000:5F:00.0: GPU is lost. Reboot the system.\n",
    "lspci -vvv": LSPCI,
    "kernel log": LOG,
    "kernel log as JSON": '{"_TRANSPORT": "kernel", "MESSAGE": "NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off '
    'the bus.", "_SOURCE_MONOTONIC_TIMESTAMP": "12345678", "PRIORITY": "3"}\n'
    '{"_TRANSPORT": "kernel", "MESSAGE": [78, 86, 82, 77, 58, 32, 88], "__MONOTONIC_TIMESTAMP": "1"}\n',
    "fabric manager log": FABRIC,
    "dcgmi diag": json.dumps(DCGM, indent=1),
    "dcgmi diag's table": DCGM_TABLE,
    "this text": MESSAGES,
    "lsmod": "Module                  Size  Used by\nnouveau              2306048  1\n",
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026\n",
}  # fmt: skip
