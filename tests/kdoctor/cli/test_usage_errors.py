"""Usage errors: options that contradict each other, would have no effect, or have a value that is not understood."""

import sys
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import kdoctor_here
from kdoctor.cli.conflicts import refuse_with
from kdoctor.errors import UsageError

NO_TRAINING = ("check", "-c", "cpu-smoke", "--no-smoke")
SNAPSHOT = ("--snapshot", "node.json")


@cases(
    ((*NO_TRAINING, "--steps", "3"), "--steps requires --model"),
    ((*NO_TRAINING, "--replicas", "2"), "--replicas 2"),
    ((*NO_TRAINING, "--lock", "x.yaml", "--no-lock"), "--no-lock"),
    (("check", *SNAPSHOT, "--python", "p", "--save-snapshot", "s"), "--python and --save-snapshot"),
    (("snapshot", "-c", "cpu-smoke", "--no-smoke", "--replicas", "2"), "--replicas 2"),
    (("snapshot", "--import", "x.txt", "--no-smoke"), "--no-smoke"),
    (("snapshot", "--import", "x.txt", "-c", "cpu-smoke"), "--checklist"),
    (("checklist", "record", "cpu-smoke", *SNAPSHOT, "--replicas", "2"), "--replicas"),
    (("checklist", "record", "cpu-smoke", *SNAPSHOT, "--python", "p"), "--python"),
    (("checklist", "init", "new.yaml", *SNAPSHOT, "--python", "p"), "--python"),
    (("checklist", "show", "cpu-smoke", "--plain", "--resolved"), "--resolved"),
    (("rollback", *SNAPSHOT, "--python", "p"), "--python"),
    (("lint", "--explain", "jit-compile", "train.py"), "PATH"),
    (("rollback", "--fix-script", "back.sh", "--format", "json"), "--fix-script and --format json"),
    (("rollback", "--verify", "--fix-script", "back.sh"), "--fix-script and --verify"),
    (("rollback", "--verify", "--format", "json"), "--format json and --verify"),
    (("rollback", "--verify", *SNAPSHOT), "--verify and --snapshot"),
    (("check", "my node.yaml"), "kdoctor check --checklist 'my node.yaml'"),
    (("rollback", "my node.yaml"), "kdoctor rollback --checklist 'my node.yaml'"),
    (("check", "--model", "train.py", "--lr", "1", "--gpus", "2"), "--model 'train.py --lr 1'\n"),
    (("check", "--model", "train.py", "data"), "--model 'train.py data'\n"),
    (("check", "--model", "jobs.train", "--", "--lr", "1"), "--model 'jobs.train --lr 1'\n"),
    (("check", "--model", "a.py", "--no-smoke", "--", "--lr", "1"), "--model 'a.py --lr 1'\n"),
    (("check", "--no-smoke", "--model=train.py", "data"), "kdoctor check --checklist data\n"),
    (("check", "--model", "train.py", "--no-smok"), "--no-smoke"),
    (("check", "--model", "python3.99 train.py --lr 1"), "--model 'train.py --lr 1'\n"),
    (("check", "--model", "python -m jobs.train --lr 1"), "--model 'jobs.train --lr 1'\n"),
    (("check", "--select", "gpu", "host"), "Repeat the option: --select host\n"),
    (("check", "-c", "cpu-smoke", "data"), "unexpected argument data\n"),
    (("check", *SNAPSHOT, "--snapshot", "log.txt"), "kdoctor snapshot --import "),
    (("check", "--restore", "saves"), "--restore /data/checkpoints\n"),
    (("check", "--restore"), "kdoctor check --help-all\n"),
    (("check", "--data", "read"), "--model train.py:build --data train.py:read, or a script alone: --model train.py\n"),
    (("rollback", "--to", "last-pasing"), "did you mean 'last-passing'?"),
    (("lint", "--select", "KD101x", "."), "did you mean 'KD101'?"),
    (("check", "--restore", "--loop", "train:loop"), "kdoctor check --help-all\n"),
    (("explain", "gpu.repli"), "'gpu.replicas-match'"),
    (("checklist", "diff", "a b.yaml"), "kdoctor checklist diff 'a b.yaml' --base HEAD\n"),
    (("explain", "site.scratch"), "with --plugin)"),
    (("check", "--select", "site.scratch"), "of a --plugin"),
    (("check", "--model", "job.py:build"), "--model job.py\n"),
    (("explain", "KD999"), "'KD999'"),
    (("explain", "KD"), "there are KD101, KD102"),
    (("rollback", "--to", "last"), "or last-passing"),
    (("diagnose",), "- for stdin"),
    (("check", "--python", "/nowhere/python"), "/nowhere/python"),
    (("check", "--python", "/bin/sh"), "/bin/sh"),
    (("check", "--snapshot", "/nowhere.json"), "/nowhere.json"),
    (("check", "--checklist", "cpu-smok"), "did you mean 'cpu-smoke'"),
    (("check", "--checklist", "/"), "/: "),
    (("check", "--output", "json=/nowhere/report.json"), "mkdir -p /nowhere"),
    (("check", "--output", "jsn=report.json"), "did you mean 'json'"),
    (("check", "--save-snapshot", "/nowhere/facts.json"), "mkdir -p /nowhere"),
    (("check", "--format", "yaml"), "--format yaml"),
    (("check", "--select", "gpu.fre"), "did you mean 'gpu.free'"),
    (("check", "--select", "cluster.same-checklst"), "did you mean 'cluster.same-checklist'"),
    (("check", "-c", "cpu-smoke", "--select", "smoke.clipping"), "kdoctor smoke smoke.silent-features --replicas 2"),
    (("check", "-c", "cpu-smoke", "--select", "job.clipping"), "kdoctor check --model "),
    (("check", "--skip", "*"), "--skip *"),
    (("check", "--plugin", "no.such.module:checks"), "--plugin no.such.module:checks"),
    (("check", "--fail-on", "fatal"), "'fatal'"),
    (("check", "--replicas", "0"), "--replicas"),
    (("smoke", "basline"), "did you mean 'baseline'?"),
    (("smoke", "--tier", "fast"), "'fast'"),
    (("smoke", "--strategy", "miror"), "'mirrored'"),
    (("smoke", "--replicas", "0"), "--replicas"),
    (("smoke", "--keep-artifacts", "/dev/null/here"), "--keep-artifacts /dev/null/here"),
    (("checklist", "record", "cpu-smoke", "--accept", "gpu.free"), "--accept requires --reason"),
    (("checklist", "record", "cpu-smoke", "--reason", "x"), "--reason requires --accept"),
    (("checklist", "record", "cpu-smoke", "--accept", "gpu.fre", "--reason", "x"), "did you mean 'gpu.free'"),
    (("checklist", "record", "cpu-smoke", "--lock", "/nowhere/x.yaml"), "mkdir -p /nowhere"),
    (("matrix", "--driver", "new"), "--driver new"),
    (("matrix", "--gpu", "RTX 6000"), "RTX 6000"),
    (("matrix", "--gpu", "H1000"), "did you mean 'H100'?"),
    (("matrix", "--python", "three"), "--python three"),
    (("matrix", "--python", "/no/such/python"), "/no/such/python"),
    (("matrix", "--tensorflow", "2.99"), "2.99"),
    (("matrix", "--matrix", "/no/such.yaml"), "/no/such.yaml"),
    (("matrix", "--format", "xml"), "--format xml"),
    (("matrix", "extra"), "no such command: extra\nTo see"),
    (("matrix", "tensorflow", "2.15"), "did you mean '--tensorflow'?"),
    (("train.py",), "kdoctor check --model train.py\n"),
    (("train.log",), "kdoctor diagnose train.log\n"),
    (("diagnose", "missing.log"), "missing.log: no such file"),
    (("matrix", "2.21"), "mean '--tensorflow 2.21'?"),
    (("diff",), "mean 'checklist diff'?"),
    (("chek",), "mean 'check'?"),
    (("checklist", "validat"), "mean 'validate'?"),
    *((("history", "--last", number), "'--last'") for number in ("many", "-1", "1.5", str(2**70))),
    (("fleet", "rn"), "no such command: rn; did you mean 'run'?\nTo see the commands"),
    (("--model", "train.py"), "no such option: --model\nTo see the commands"),
    (("checklist", "init", "cpu-smoke"), "kdoctor checklist init cpu-smoke.yaml\n"),
    (("checklist", "diff", "main", __file__), f"kdoctor checklist diff {__file__} --base main\n"),
    (("check", "--python", "x", "--gpus", "two"), "kdoctor check --help\n"),
    (("check", "--fit", "0"), "kdoctor check --help-all\n"),
    (("check", "--model", "nowhere/train.py"), "the folder nowhere does not exist\n"),
    (("check", "--model", "nope.py"), f"no such file in {Path.cwd()}\n"),
    (("matrix", "--gpux", "A100"), "no such option: --gpux; did you mean '--gpu'?\nTo see"),
    (("check", "smoke"), "kdoctor check --select smoke\n"),
    (("check", sys.executable), f"--snapshot {sys.executable}\n"),
    (("smoke", "clipping"), "unknown scenario 'clipping'\n"),
    (("smoke", "--tier", "quik"), "mean 'quick'?"),
    (("check", "train.py"), "check --model train.py\n"),
    (("check", "--output", "a b.md"), "--output markdown='a b.md'\n"),
    (("check", "--format", "md"), "mean 'markdown'?"),
    (("check", "--select", "versions.tensorflow"), "mean 'versions.tensorflow-installed'?"),
    (("matrix", "--gpu"), "requires an argument\nTo see what it takes: kdoctor matrix --help\n"),
    (("matrix", "--platform", "windoze"), "did you mean 'windows'?"),
    (("matrix", "--cuda", "new"), "--cuda new"),
    (("matrix", "--framework", "torch"), "--framework torch"),
    (("matrix", "--framework", "jax", "--tensorflow", "2.21"), "--framework jax"),
    (("matrix", "add"), "--wheel"),
    (("matrix", "add", "--wheel", "/no/such.whl"), "/no/such.whl"),
)
def test_usage_error_exits_with_2(arguments: tuple[str, ...], named: str) -> None:
    done = kdoctor_here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_only_given_options_are_refused() -> None:
    refuse_with("--snapshot", None, {"--python": "p"}, why="")
    refuse_with("--snapshot", "x", {"--python": None, "--no-smoke": False, "--plugin": []}, why="")
    with pytest.raises(UsageError, match="--replicas cannot be used with --snapshot"):
        refuse_with("--snapshot", "x", {"--python": None, "--replicas": 0}, why="")
