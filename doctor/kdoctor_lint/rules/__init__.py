"""The rules, one a file, in the order of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdoctor.errors import UsageError, did_you_mean
from kdoctor_lint.model import Rule
from kdoctor_lint.rules import (
    compile_outside_scope,
    fixed_batch,
    hard_coded_device_count,
    hard_coded_devices,
    jit_compile,
    list_local_devices,
    load_model_outside_scope,
    metrics_outside_scope,
    model_outside_scope,
    multi_gpu_model,
    no_drop_remainder,
    no_prefetch,
    optimizer_outside_scope,
    per_replica_batch,
    save_from_every_worker,
    unscaled_learning_rate,
)
from kdoctor_lint.rules import (
    internal as own,
)

RULES: Mapping[str, Rule] = {
    rule.id: rule
    for rule in (
        model_outside_scope.RULE,
        load_model_outside_scope.RULE,
        compile_outside_scope.RULE,
        optimizer_outside_scope.RULE,
        metrics_outside_scope.RULE,
        per_replica_batch.RULE,
        fixed_batch.RULE,
        no_drop_remainder.RULE,
        no_prefetch.RULE,
        unscaled_learning_rate.RULE,
        hard_coded_devices.RULE,
        hard_coded_device_count.RULE,
        list_local_devices.RULE,
        multi_gpu_model.RULE,
        jit_compile.RULE,
        save_from_every_worker.RULE,
        own.IGNORE_WITHOUT_REASON,
        own.UNUSED_IGNORE,
        own.SYNTAX_ERROR,
        own.UNREADABLE_FILE,
    )
}
"""Every rule by its id."""


def rule_named(name: str) -> Rule:
    """The rule of an id, with or without its ``lint.``.

    Raises:
        UsageError: there is none.
    """
    rule = RULES.get(name) or RULES.get(f"lint.{name}")
    if rule is None:
        raise UsageError(f"there is no rule {name!r}{did_you_mean(name, RULES)}", hint="Rules: " + ", ".join(RULES))
    return rule


def chosen_rules(select: Sequence[str], ignore: Sequence[str]) -> Mapping[str, Rule]:
    """The rules that a run applies. That a file cannot be read is told whatever is chosen.

    Raises:
        UsageError: a rule is named that does not exist, or none is left.
    """
    wanted = {rule_named(name).id for name in select} or set(RULES)
    wanted -= {rule_named(name).id for name in ignore}
    if not wanted:
        raise UsageError("no rule is left to apply", hint="Rules: " + ", ".join(RULES))
    return {
        name: rule for name, rule in RULES.items() if name in wanted or rule in (own.SYNTAX_ERROR, own.UNREADABLE_FILE)
    }
