#!/bin/sh
# For Prolog= in slurm.conf, with PrologFlags=Alloc. A prolog that ends with another code than 0 drains the node and
# requeues the job, so only a failure does that (1); what could not be judged (3) or asked (2, 4) is logged alone.
# The trainings are left out: a prolog holds up every job. KDOCTOR and KDOCTOR_JOB_PYTHON may be set for other places.
line="$("${KDOCTOR:-/opt/kdoctor/bin/kdoctor}" check --checklist "${KDOCTOR_CHECKLIST:-multi-gpu-keras}" --no-smoke \
  --python "${KDOCTOR_JOB_PYTHON:-/opt/job}" --timeout 60 --quiet --no-history 2>&1)"
code=$?
logger --tag kdoctor "job ${SLURM_JOB_ID:-none}: $line" 2>/dev/null || :
if [ "$code" -eq 1 ]; then
  # What a prolog prints after "print " is shown to the user by srun.
  echo "print kdoctor drained $(hostname): $line"
  exit 1
fi
exit 0
