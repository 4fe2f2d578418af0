"""Runs the whole protocol on a virtual clock, under random faults, for many seeds."""
