"""The study of how often to repack; it writes docs/studies/frequency.md."""
