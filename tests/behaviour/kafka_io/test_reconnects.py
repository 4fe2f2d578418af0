"""A client that has lost its broker finds it again soon after it is back, with either library."""

import socket
import subprocess
import sys
import time

import pytest

AWAY_S = 7.0
# In a process of its own, which can be ended while it asks.
ASKING = """
import sys
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.log_sizes import LogSizeReader
from penstock.settings.sections import KafkaSettings
kafka = KafkaSettings.model_validate({"bootstrap_servers": sys.argv[1], "answer_timeout": "60s"})
print("asks", flush=True)
"""


@pytest.mark.parametrize("ask", ["Administration(kafka).cluster()", "LogSizeReader(kafka)"])
def test_a_broker_is_tried_every_second_while_it_is_away(ask: str) -> None:
    """After seven seconds of refused connections the next attempt comes within two."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = probe.getsockname()
    command = [sys.executable, "-c", ASKING + ask, f"127.0.0.1:{address[1]}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(AWAY_S)  # nobody listens meanwhile
        try:
            with socket.create_server(address) as back:
                back.settimeout(2.0)
                connection, _ = back.accept()
                connection.close()
        finally:
            child.kill()
