"""What would happen, before anything touches a cluster.

Two things live here: packing on recorded or generated speeds (`stream`, `replay`, the studies), and
the whole protocol on a virtual clock with faults (`world`, `campaign`). Nothing imports this room
but the command line and tests.
"""
