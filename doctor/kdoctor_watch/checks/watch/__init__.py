"""Checks of a training that ``kdoctor.Watch`` looks at while it runs."""
