"""The connection to a Spark Connect server, with its token and with TLS where the address says so.

Spark's own builder uses TLS for every token that does not go to `localhost`, and puts a token into
the address. Here the token travels as the header that the server reads, on the loopback too.
"""

from collections.abc import Iterable
from pathlib import Path

import grpc
from pyspark.sql.connect.client.core import DefaultChannelBuilder

from penstock.errors import SettingsError
from penstock.pipeline.server_token import token_for
from penstock.settings.sections import SparkSettings

RECONNECT_MS_MAX = 1_000
# By default all connections of a process to one address share their pauses between attempts, which
# grow to two minutes while a server is away: a new session would wait for the pause of a lost one.
_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", RECONNECT_MS_MAX),
]


class ConnectChannel(DefaultChannelBuilder):
    def __init__(self, spark: SparkSettings, address: str) -> None:
        super().__init__(address, _OPTIONS)
        self._spark = spark
        self._server_token = token_for(spark)

    @property
    def token(self) -> None:
        """None, for Spark's builder: the header below has it."""
        return

    def metadata(self) -> Iterable[tuple[str, str]]:
        given = list(super().metadata())
        if self._server_token is None:
            return given
        return [*given, ("authorization", f"Bearer {self._server_token.reveal()}")]

    def toChannel(self) -> grpc.Channel:  # noqa: N802 -- Spark's name
        if not self._spark.is_encrypted:
            return self._insecure_channel(self.endpoint)
        file = self._spark.certificate_authority_file
        return self._secure_channel(
            self.endpoint, grpc.ssl_channel_credentials(_content(file) if file else None)
        )


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise SettingsError(
            f"spark.certificate_authority_file: {file} cannot be read: {error.strerror}."
        ) from error
