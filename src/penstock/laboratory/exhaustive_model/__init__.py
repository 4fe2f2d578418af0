"""Searches every interleaving of a group of two consumers and three partitions."""
