#!/bin/sh
# For Prolog= in slurm.conf, with PrologFlags=Alloc; for jobs that have their node to themselves. A prolog that ends
# with another code than 0 drains the node and holds the job, so only a failure does that (1); what could not be judged
# (3) or asked (2, 4) is logged alone. The trainings are left out: a prolog holds up every job.
# slurmd hands a prolog nothing but SLURM_*, so other places stand here:
KDOCTOR="${KDOCTOR:-/opt/kdoctor/bin/kdoctor}"
KDOCTOR_JOB_PYTHON="${KDOCTOR_JOB_PYTHON:-/opt/job}"
KDOCTOR_CHECKLIST="${KDOCTOR_CHECKLIST:-multi-gpu-keras}"
# It hands no search path either.
PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"
export PATH

line="$("$KDOCTOR" check --checklist "$KDOCTOR_CHECKLIST" --python "$KDOCTOR_JOB_PYTHON" \
  --no-smoke --timeout 60 --quiet --no-history 2>&1)"
code=$?
line="$(printf '%s' "$line" | tr '\n' ' ')"
logger --tag kdoctor "job ${SLURM_JOB_ID:-none}, exit code $code: $line" 2>/dev/null || :
[ "$code" -eq 1 ] || exit 0
# Nothing that a prolog prints reaches anybody. So the node says why (sinfo -R), and so does the job, which then waits
# held: squeue -o '%i %T %k', scontrol show job. What cannot be told must not keep the node from being drained.
scontrol update "nodename=${SLURMD_NODENAME:-$(hostname)}" state=drain "reason=$line" 2>/dev/null || :
scontrol update "jobid=${SLURM_JOB_ID:-}" "comment=$line" 2>/dev/null || :
exit 1
