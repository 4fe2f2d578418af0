"""The study that compares packing algorithms; writes docs/studies/packing.md."""
