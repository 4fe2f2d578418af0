"""The study of how often to repack; writes docs/development/studies/frequency.md."""
