"""The built-in scenarios' programs: each defines ``CASES``, case name to a function of the case's context."""
