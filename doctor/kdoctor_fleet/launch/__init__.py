"""Runs kdoctor on every node through a scheduler or ssh, and collects the reports."""
