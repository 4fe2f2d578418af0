"""Log sizes and offsets in, write speeds out. Everything but `process` is pure."""
