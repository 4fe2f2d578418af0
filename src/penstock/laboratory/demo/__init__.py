"""The demo: a group on one machine, parts of which are killed, and a check for lost records."""
