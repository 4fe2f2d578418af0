"""How fast one consumer is, and what that depends on.

Real parts only: an embedded broker, real Spark, `penstock consumer` as a process of its own, and a
seat from which it is commanded as the controller would.
"""
