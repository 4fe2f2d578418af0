"""A live group under a random schedule of faults, and an independent count of its records."""
