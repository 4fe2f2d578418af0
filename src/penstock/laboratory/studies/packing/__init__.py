"""The study that compares packing algorithms; it writes docs/studies/packing.md."""
