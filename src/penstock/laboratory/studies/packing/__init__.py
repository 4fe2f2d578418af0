"""The study that compares packing algorithms; it writes docs/development/studies/packing.md."""
