"""How true and how quick the monitor is: producer and monitor compared on a real broker."""
