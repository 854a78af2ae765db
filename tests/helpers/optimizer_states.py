"""Measures of a training whose optimizer's variables are those of one device."""

STATE: dict[str, float | None] = {"moved": 0.3, "state": 10.0, "mirrored_state": 10.0, "state_deviation": 2e-7}
