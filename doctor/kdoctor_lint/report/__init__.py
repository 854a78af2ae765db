"""Output formats of ``kdoctor lint``, one per file."""
