#!/bin/sh
# Use as Prolog= in slurm.conf, with PrologFlags=Alloc, for jobs that have their node to themselves. A prolog that exits
# with a nonzero code drains the node and holds the job. Only a failure (1) does that; inconclusive results (3) and
# errors (2, 4) are logged. Trainings are left out, because a prolog delays every job.
# slurmd passes only SLURM_* variables to a prolog, so set other paths here:
KDOCTOR="${KDOCTOR:-/opt/kdoctor/bin/kdoctor}"
KDOCTOR_JOB_PYTHON="${KDOCTOR_JOB_PYTHON:-/opt/job}"
KDOCTOR_CHECKLIST="${KDOCTOR_CHECKLIST:-multi-gpu-keras}"
# slurmd does not set PATH either.
PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"
export PATH

line="$("$KDOCTOR" check --checklist "$KDOCTOR_CHECKLIST" --python "$KDOCTOR_JOB_PYTHON" \
  --no-smoke --timeout 60 --quiet --no-history 2>&1)"
code=$?
line="$(printf '%s' "$line" | tr '\n' ' ')"
logger --tag kdoctor "job ${SLURM_JOB_ID:-none}, exit code $code: $line" 2>/dev/null || :
[ "$code" -eq 1 ] || exit 0
# Output of a prolog is not shown to users. The node (sinfo -R) and the held job (squeue -o '%i %T %k', scontrol show job)
# carry the reason. A failure of these commands must not prevent the node from being drained.
scontrol update "nodename=${SLURMD_NODENAME:-$(hostname)}" state=drain "reason=$line" 2>/dev/null || :
scontrol update "jobid=${SLURM_JOB_ID:-}" "comment=$line" 2>/dev/null || :
exit 1
