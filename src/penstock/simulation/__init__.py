"""Worlds in which only the decisions are real: streams for packing, and the whole protocol."""
