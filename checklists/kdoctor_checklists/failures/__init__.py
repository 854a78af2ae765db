"""The known failures as data: symptom, cause, and the checks that detect them."""
