"""The lint rules, in one file for each subject."""
