"""Listens to what a librdkafka client tells beside its answers, until a broker has answered once.

    told = ToldErrors(kafka)
    client = AdminClient(librdkafka_properties(kafka) | told.properties)
    told.first_answer(ask, lambda: client.poll(0), "asking for metadata")

A client that was let in once was right: what is told later is an outage, and passes.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import PenstockError
from penstock.kafka_io.listener_greeting import asked_refusal
from penstock.kafka_io.refused_connections import Refusal, refusal_in, refused
from penstock.settings.sections import KafkaSettings

Answer = TypeVar("Answer")

# Until the client is asked what it has been told; a refusal comes within a second or two.
_FIRST_LOOK_S = 1.0
# Of the whole wait for an answer, so much goes to looks that end early; each is twice as long as
# the one before. A machine that is busy may need seconds to be refused.
_SHARE_FOR_LOOKS = 1 / 2
_TEXTS_MAX = 50
# How long a refusal is believed without another question: settings may be mended at the broker.
_KNOWN_S = 1.0
_SILENT = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT}


class ToldErrors:
    """Of one client. Its callback is called by the thread that polls the client."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._texts: deque[str] = deque(maxlen=_TEXTS_MAX)
        self._has_answered = False
        self._refused: PenstockError | None = None
        self._refused_at_s = 0.0

    @property
    def properties(self) -> dict[str, Any]:
        return {"error_cb": self._tell}

    def _tell(self, error: KafkaError) -> None:
        if not self._has_answered:
            self._texts.append(error.str())

    def first_answer(
        self,
        ask: Callable[[float], Answer],
        poll: Callable[[], object],
        doing: str,
        timeout_s: float | None = None,
    ) -> Answer:
        """Ask with a time-out, and give up early when the reason is known.

        The first waits are short, so that a refusal is told soon; what is left is one wait, for a
        broker that is slow.
        """
        timeout_s = timeout_s or self._kafka.answer_timeout
        if not self._has_answered:
            deadline_s = time.monotonic() + timeout_s
            looks_until_s = time.monotonic() + timeout_s * _SHARE_FOR_LOOKS
            look_s = _FIRST_LOOK_S
            while time.monotonic() + look_s < looks_until_s:
                try:
                    return self._answered(ask(look_s))
                except KafkaException as raised:
                    if raised.args[0].code() not in _SILENT:
                        raise
                    self._raise_refusal(poll, doing, is_first=look_s == _FIRST_LOOK_S)
                look_s *= 2
            timeout_s = max(deadline_s - time.monotonic(), 0.0)
        try:
            return self._answered(ask(timeout_s))
        except KafkaException as raised:
            if raised.args[0].code() in _SILENT:
                self._raise_refusal(poll, doing)
            raise

    def raise_known(self) -> None:
        """Raise the refusal of a moment ago again: of many questions only one waits for it."""
        refusal, age_s = self._refused, time.monotonic() - self._refused_at_s
        if refusal is not None and age_s < _KNOWN_S and not self._has_answered:
            raise refusal

    def _answered(self, answer: Answer) -> Answer:
        self._has_answered = True
        self._texts.clear()
        return answer

    def _raise_refusal(
        self, poll: Callable[[], object], doing: str, *, is_first: bool = False
    ) -> None:
        """Raise why no broker lets this client in, if that is known."""
        if self._has_answered:
            return
        poll()
        texts = list(self._texts)
        refusal = refusal_in(texts)
        if refusal in {Refusal.PLAIN, Refusal.NO_LOGIN} or (refusal is None and not is_first):
            # A broker that ends closes connections too, and some say nothing: a look decides.
            refusal = asked_refusal(self._kafka)
        if refusal is not None:
            self._refused = refused(refusal, self._kafka, doing, texts)
            self._refused_at_s = time.monotonic()
            raise self._refused
