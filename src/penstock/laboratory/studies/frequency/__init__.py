"""The study of how often to repack; it writes docs/development/studies/frequency.md."""
