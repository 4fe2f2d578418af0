"""Measures how fast one consumer is, and what that depends on.

It uses real parts: an embedded broker, real Spark and `penstock consumer` as a process, which the
study commands in place of a controller.
"""
