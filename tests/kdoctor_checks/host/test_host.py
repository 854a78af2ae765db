from dataclasses import replace
from typing import Any

from helpers.cases import cases
from helpers.facts import GIB, MIB, gpus, host, log, logged, lost_gpu
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import Disk, Host, KernelLog, KernelLogEvent, ResourceLimit
from kdoctor.model import Severity
from kdoctor_checks.host._sizes import short_size


def governors(*names: str) -> Host:
    return host(cpu_governors=names)


test_cpu_governor = table(
    "host.cpu-governor",
    Severity.INFO,
    passes(governors("schedutil", "performance"), "schedutil, performance."),
    fails(
        governors("performance", "powersave"),
        said={"CPU frequency governor": "performance, powersave"},
        expected="not powersave or conservative",
        commands=("sudo cpupower frequency-set -g performance",),
        rollback=("sudo cpupower frequency-set -g powersave",),
    ),
    skips(governors()),
    unknown(host(cpu_governors=None)),
)


def cpus(number: int | None = 224, quota: float | None = 224.0) -> Host:
    return host(cpu_affinity=number and tuple(range(number)), cpu_limit=quota)


test_cpus = table(
    "host.cpus",
    Severity.WARNING,
    passes(cpus(16), "16 available for 8 GPUs (affinity 16, limit 224)", briefs=["16 CPUs"]),
    fails(cpus(15), "15 available for 8 GPUs (affinity 15, limit 224)", expected="at least 16"),
    passes(cpus(1), gpus(1), {"least_per_gpu": 1}, briefs=["1 CPU"]),
    unknown(cpus(None), "affinity mask was not read"),
    unknown(cpus(quota=None), "limit of the control groups was not read"),
    unknown(gpus(1, lost_gpu(0))),
    given=(host(), gpus(8)),
)


def disks(working: int, temporary: int = 50 * GIB) -> Host:
    sizes = (("working folder", working), ("temporary folder", temporary))
    return host(disks=tuple(Disk(folder=name, total_bytes=1000 * GIB, free_bytes=free) for name, free in sizes))  # type: ignore[arg-type]


test_disk = table(
    "host.disk",
    Severity.WARNING,
    passes(disks(50 * GIB), briefs=["50 GiB disk free", ""]),
    passes(disks(2 * GIB), "2048 MiB of 1000.0 GiB free"),
    fails(disks(2 * GIB - MIB), "2047 MiB of 1000.0 GiB free", of=["working folder"], evidence=1),
    fails(disks(2 * GIB - 1), "less than 2 GiB", expected="at least 2 GiB free"),
    fails(disks(5 * GIB, 0), 'df -h "${TMPDIR:-/tmp}";', of=["temporary folder"]),
    unknown(host(disks=disks(500 * GIB).disks[1:]), of=["working folder"]),
    unknown(host(disks=()), "its file system was not read, or did not respond in time", of=2),
)

test_huge_pages = table(
    "host.huge-pages",
    Severity.INFO,
    passes(host(transparent_hugepages="madvise")),
    fails(
        host(transparent_hugepages="never"),
        said={"transparent huge pages": "never"},
        expected="always or madvise",
        commands=("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",),
        rollback=("echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",),
    ),
    fails(
        host(transparent_hugepages="madvise"),
        {"accepted": ("always",)},
        commands=("echo always | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",),
    ),
    unknown(host(transparent_hugepages=None)),
)

CORRECTED = "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0)"
SEVERE = (
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0)",
    "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: b200000000070f0f",
    "{1}[Hardware Error]: event severity: fatal",
    "Kernel panic - not syncing: Fatal hardware error!",
    "BUG: unable to handle page fault for address: ffff888000000000",
)
HARMLESS = (
    "EDAC MC: Ver: 3.0.0",
    "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:64:0a.0",
    "EDAC amd64: ECC disabled in the BIOS or no ECC capability, module will not load.",
    "mce: CPU0: Thermal monitoring enabled (TM1)",
    "[Hardware Error]: Corrected error, no action required.",
)


def events(corrected: int = 0, *severe: Any) -> KernelLog:
    found = [KernelLogEvent(kind=kind, text="a line") for kind in severe]
    few = KernelLogEvent(kind="hardware-corrected", text="a line", times=corrected)
    return log(*found, *([few] if corrected else []))


test_kernel_errors = table(
    "host.kernel-errors",
    Severity.WARNING,
    passes(events(), said={"kernel log": "no hardware error and no crash in 2048 lines of /dev/kmsg"}),
    passes(events(10), said={"kernel log": "10 corrected hardware errors in 2048 lines of /dev/kmsg"}),
    passes(events(10), briefs=["corrected hardware errors"]),
    fails(events(11), "corrected hardware error x11; last line: 'a line'", briefs=["many corrected hardware errors"]),
    fails(events(1, "crash"), "Update that driver or the kernel."),
    fails(events(1, "crash", "hardware-error"), "have the memory or the machine serviced."),
    fails(events(1, "crash"), said={"kernel log": "kernel panic, oops or lockup; last line: 'a line'"}),
    fails(events(10, "crash"), "lockup; last line: 'a line'.", briefs=["kernel panic, oops or lockup"]),
    fails(
        events(11, "crash", "hardware-error"),
        "kernel panic, oops or lockup, uncorrected hardware error, corrected hardware error x11; last line: 'a line'",
        briefs=["a crash and hardware errors"],
    ),
    *(fails(logged(f"[   12.500000] {line}")) for line in SEVERE),
    fails(logged(SEVERE[0]), briefs=["uncorrected hardware error of CPU_SrcID#0_MC#0_Chan#0_DIMM#0"]),
    *(passes(logged(line)) for line in HARMLESS),
    *(passes(logged(*[CORRECTED] * times)) for times in (1, 10)),
    *(fails(logged(*[CORRECTED] * times)) for times in (11, 900)),
    unknown(log(lines=0), "is empty"),
)


OF_A_GROUP = "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:93411224kB, anon-rss:16777216kB"
LIMIT = "killed at the memory limit of a {}: {}".format
OF_JOB = f"{(KILL := 'oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=')}/slurm/uid_7/job_12,task=python3,pid=4711,uid=7"
OF_POD = f"{KILL}/kubepods.slice/pod1,task_memcg=/kubepods.slice/pod1/a,task=train.py,pid=4711,uid=0"
OF_ALL = "Out of memory: Killed process 812 (tensorboard) total-vm:1kB"
ASKED = "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0"
OF_OLD_KERNELS = "Out of memory: Kill process 99 (python) score 912 or sacrifice child"

test_killed_programs = table(
    "host.killed-programs",
    Severity.WARNING,
    passes(logged("usb 1-1: new device"), said={"kernel log": "no killed program in 1 line"}),
    fails(logged(OF_A_GROUP), "last line: 'Memory cgroup", briefs=[LIMIT("cgroup", "python3")]),
    fails(logged(OF_POD), "train.py was killed;", "resources.limits", briefs=[LIMIT("container", "train.py")]),
    fails(logged(OF_JOB, OF_A_GROUP), "sbatch --mem", briefs=[LIMIT("Slurm job", "python3")]),
    fails(logged(OF_JOB, OF_ALL), "or request more", briefs=["the kernel killed python3, tensorboard: out of memory"]),
    passes(logged("oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python3,pid=4711,uid=0")),
    fails(logged(OF_A_GROUP, OF_ALL, OF_A_GROUP), "python3 was killed x2, tensorboard was killed;", of=["kernel log"]),
    fails(logged(OF_OLD_KERNELS), briefs=["the kernel killed python: out of memory"]),
    fails(logged("Out of memory: Killed process 9 ((resolved)) total-vm:1kB"), "(resolved) was killed;"),
    fails(logged(ASKED), briefs=["the kernel killed a program: out of memory"]),
    fails(logged(ASKED, OF_ALL), briefs=["the kernel killed tensorboard: out of memory"]),
    *(
        row(replace(logged(f"{at}{OF_ALL}"), until_s=until_s))
        for row, at, until_s in ((fails, "[ 4000.0] ", 9e4), (passes, "[ 4000.0] ", 91e3), (fails, "", 91e3))
    ),
    unknown(log(lines=0), "is empty"),
)


def limit(name: Any, soft: int | None, hard: int | None = None, **more: Any) -> Host:
    return host(limits=(ResourceLimit(name=name, soft=soft, hard=hard),), **more)


test_locked_memory = table(
    "host.locked-memory",
    Severity.INFO,
    passes(limit("memlock", None), "unlimited"),
    passes(limit("memlock", 64 * MIB), "64 MiB"),
    fails(
        limit("memlock", 65536),
        {"least_mib": 64},
        said={"ulimit -l": "64 KiB"},
        expected="unlimited, or at least 64 MiB",
        commands=("ulimit -l unlimited",),
        rollback=("ulimit -l 64",),
    ),
    fails(limit("memlock", 65536, 65536, container=None), commands=("sudo prlimit --pid $$ --memlock=unlimited",)),
    fails(limit("memlock", 65536, 65536, container="docker"), commands=()),
    unknown(limit("nofile", 1), said={"ulimit -l": "the limit was not read"}),
)


def memory(total: int | None, available: int | None) -> Host:
    return host(memory_total_bytes=total, memory_available_bytes=available)


test_memory = table(
    "host.memory",
    Severity.WARNING,
    passes(memory(16 * GIB, 2 * GIB), "2048 MiB of 16.0 GiB available"),
    fails(memory(16 * GIB, 2 * GIB - 1), expected="at least 2048 MiB"),
    fails(memory(1000 * GIB, 50 * GIB - 1), expected="at least 50.0 GiB"),
    unknown(memory(16 * GIB, None)),
    unknown(memory(None, 16 * GIB)),
)


def job_limits(cpu: int | None, fsize: int | None = None, hard: int | None = None) -> Host:
    named = (("cpu", cpu), ("fsize", fsize))
    return host(limits=tuple(ResourceLimit(name=name, soft=soft, hard=hard) for name, soft in named))


test_job_limits = table(
    "host.job-limits",
    Severity.WARNING,
    passes(job_limits(None), said={"ulimit -t": "unlimited", "ulimit -f": "unlimited"}),
    passes(job_limits(24 * 3600, 16 * GIB), said={"ulimit -t": "24 h of CPU time", "ulimit -f": "16 GiB in a file"}),
    passes(job_limits(3), {"least_hours": 0.0}),
    fails(job_limits(24 * 3600 - 1), of=["ulimit -t"], commands=("ulimit -S -t unlimited",)),
    fails(job_limits(None, 16 * GIB - 1, hard=20 * GIB), of=["ulimit -f"], commands=("ulimit -S -f hard",)),
    skips(host(os="Windows", limits=())),
    unknown(host(limits=()), of=2),
)

test_open_files = table(
    "host.open-files",
    Severity.INFO,
    passes(limit("nofile", None), said={"ulimit -n": "unlimited"}),
    passes(limit("nofile", 4096), said={"ulimit -n": "4096"}),
    fails(limit("nofile", 4095), said={"ulimit -n": "4095 (hard limit unlimited)"}),
    fails(limit("nofile", 1024, 4096), expected="at least 4096", commands=("ulimit -n 4096",)),
    fails(
        limit("nofile", 1024, 4095),
        {"least": 4096},
        said={"ulimit -n": "1024 (hard limit 4095)"},
        commands=("sudo prlimit --pid $$ --nofile=4096:4096",),
        rollback=("ulimit -n 1024",),
    ),
    unknown(host(limits=())),
)


SHM = "/dev/shm"  # noqa: S108 - where kdoctor writes nothing


def shm(total: int | None, free: int | None, **changes: Any) -> Host:
    return host(shm_total_bytes=total, shm_free_bytes=free, **changes)


test_shared_memory = table(
    "host.shared-memory",
    Severity.WARNING,
    passes(shm(GIB, 256 * MIB), said={SHM: "1024 MiB total, 256 MiB free"}),
    fails(shm(GIB - MIB, 256 * MIB), said={SHM: "1023 MiB total, 256 MiB free"}),
    fails(shm(GIB, 256 * MIB - 1), expected="at least 1 GiB total, 256 MiB free"),
    fails(
        shm(64 * MIB, 64 * MIB),  # Docker's default
        commands=("sudo mount -o remount,size=8g /dev/shm",),
        rollback=("sudo mount -o remount,size=65536k /dev/shm",),
    ),
    fails(
        shm(64 * MIB, 64 * MIB, container="docker", image="job:1"),
        commands=("docker run --shm-size=1g --ulimit memlock=-1 job:1 '<command>'",),
    ),
    fails(shm(64 * MIB, 64 * MIB, container="docker"), "--ulimit memlock=-1 '<image>' '<command>'"),
    unknown(shm(None, GIB)),
    unknown(shm(GIB, None)),
    unknown(host(os="Darwin"), said={SHM: "Darwin has no /dev/shm"}),
)


def swap(used: int | None, total: int | None = 8 * GIB, memory: int | None = 100 * GIB) -> Host:
    return host(swap_used_bytes=used, swap_total_bytes=total, memory_total_bytes=memory)


test_swap = table(
    "host.swap",
    Severity.INFO,
    passes(swap(10 * GIB), said={"swap": "10.0 GiB of 8192 MiB used"}),
    fails(swap(10 * GIB + 1), expected="at most 10.0 GiB"),
    unknown(swap(None), said={"swap": "its size or used amount was not read"}),
    unknown(swap(0, None)),
    unknown(swap(0, memory=None)),
)


@cases(
    (0, "0 MiB"),
    (GIB - 1, "1024 MiB"),
    (512 * MIB, "512 MiB"),
    (GIB, "1 GiB"),
    (252 * GIB, "252 GiB"),
    (1024 * GIB, "1.0 TiB"),
    (1536 * GIB, "1.5 TiB"),
)
def test_size_has_the_unit_of_its_order(size: int, shown: str) -> None:
    assert short_size(size) == shown
