"""Live faults: tables by kind, and what runs them."""
