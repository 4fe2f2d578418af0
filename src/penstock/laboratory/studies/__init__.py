"""Measured answers to questions of design: each study can be run again, and writes its tables."""
