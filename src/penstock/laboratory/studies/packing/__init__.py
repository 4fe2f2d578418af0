"""The study that compares packing algorithms; writes docs/development/studies/packing.md."""
