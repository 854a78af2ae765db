"""Shell commands that remedies and rollbacks print. Pure text: nothing here runs one."""
