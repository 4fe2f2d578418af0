"""Repeatable measurements behind design decisions; each study writes its own report."""
