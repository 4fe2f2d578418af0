"""Trying things before they touch a cluster: packing on recorded or generated streams of speeds."""
