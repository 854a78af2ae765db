"""Past runs, in an SQLite database in the user's state directory."""
