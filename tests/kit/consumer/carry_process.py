"""One consumer's worth of pipeline as a process of its own: carries a topic, or dies at a point.

python -m kit.consumer.carry_process BOOTSTRAP LAKE MASTER TOPIC INCARNATION [POINT]
"""

import os
import signal
import sys
from pathlib import Path

from kit.lake.lake import Carrier, lake_settings
from penstock.pipeline import Writer, start_session
from penstock.settings.sections import KafkaSettings


def main() -> None:
    bootstrap, root, master, topic, incarnation, *points = sys.argv[1:]
    settings = lake_settings(KafkaSettings(bootstrap_servers=bootstrap), Path(root), master)
    if master.startswith("spark://"):
        options = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
        spark = settings.spark.model_copy(update={"options": options})
        settings = settings.model_copy(update={"spark": spark})
    session = start_session(settings.spark)
    carrier = Carrier(settings, session, Writer(1, int(incarnation)))

    def at(point: str) -> None:
        if point in points:
            os.kill(os.getpid(), signal.SIGKILL)

    carrier.pipeline._at_point = at
    result = carrier.carry_all(topic)
    if result.failures:
        sys.exit(str(result.failures))
    sys.stdout.write(f"{result.records}\n")
    session.stop()


if __name__ == "__main__":
    main()
