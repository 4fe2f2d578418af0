"""Penstock keeps a Kafka consumer group exactly as large as its load.

brokers -> monitor -> [messages] -> controller (+ packing) -> [messages] -> consumer -> pipeline -> lake
                                         |
                                    deployment (starts and stops consumers)
"""  # noqa: E501 -- the picture of the flow is one line

__version__ = "0.1.0"
