"""Reaches the files of a lake in an object store: S3 and what is like it.

Consumers use it for logs and small files, Spark's Python workers for the Parquet files that they
write. Every call gives Python's interpreter lock back while it waits and ends after a bounded time:
a store that takes connections and answers nothing holds one thread, never the whole process.

Only `client` and `streams` import the library, obstore. They are imported when they are needed: a
lake on a file system needs none of it.
"""
