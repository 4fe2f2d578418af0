"""The study of how often to repack; writes docs/studies/frequency.md."""
