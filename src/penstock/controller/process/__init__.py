"""The controller's only door to the outside world: Kafka, the deployment, the disk, the clock.

    mail thread ----letters---\
    speeds thread --measured---> inbox -> the loop (one thread, owns the state) -> hands
    workers --------results---/

The loop saves before it sends, and sends what one step asks for in one transaction.
"""

from penstock.controller.process.loop import ControllerProcess

__all__ = ["ControllerProcess"]
