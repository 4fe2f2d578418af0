"""Replays recorded or generated write speeds through a packing algorithm (`penstock simulate`)."""
