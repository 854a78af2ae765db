"""The known failures, as data: what people see, why, and what catches it."""
