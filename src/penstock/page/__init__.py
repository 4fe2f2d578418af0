"""The live page of a group, and the read-only API behind it.

`core` computes every answer from the controller's snapshots; what serves them is beside it.
"""
