"""A Model Context Protocol server for editors and agents."""
