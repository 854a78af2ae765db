"""Every run, kept in an embedded database in the user's state folder: what was green, what changed, what drifts slowly.

Nothing here is imported before it is needed: SQLite is no business of ``kdoctor --help``.
"""
