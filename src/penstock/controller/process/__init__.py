"""The controller's process: Kafka, the deployment, the disk and the clock.

    messages thread --messages----\
    speeds thread ----measurements--> inbox -> the loop (one thread, owns the state) -> effects
    worker threads ---results-----/

The loop saves before it sends, and sends what one step asks for in one transaction.
"""

from penstock.controller.process.loop import ControllerProcess

__all__ = ["ControllerProcess"]
