"""Penstock keeps a Kafka consumer group exactly as large as its load.

brokers -> monitor -> [messages] -> controller (+ packing) -> [messages] -> consumer -> pipeline -> lake
                                         |
                                    deployment (starts and stops consumers)

Public, and kept stable between versions: the `penstock` program with its settings, and two modules,
`penstock.transformations` (what a transformation is) and `penstock.testing` (run one in a test).
Everything else in this package may change without notice.
"""  # noqa: E501 -- the picture of the flow is one line

__version__ = "0.1.0"
