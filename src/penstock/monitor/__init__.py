"""Measures how fast every partition is written. `core` computes; `process` asks and publishes."""
