"""The names of the control topics. No other place puts them together.

    <prefix>-monitor      write speeds, from the monitor
    <prefix>-controller   the controller's commands to consumers, its claims and heartbeats
    <prefix>-consumer     what consumers report to the controller
    <prefix>-query        the controller's state queries to consumers
    <prefix>-service      operators' requests and the answers to them
    <prefix>-state        what a new controller must know and no consumer can tell it
    <prefix>-status       what people see of the group: the controller's newest status
    <prefix>-commit       batches that one consumer commits for several; only where they
                          commit together (`lake.commits`)

`TopicsSettings.names` gives the names of a group.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ControlTopicNames:
    prefix: str

    @property
    def monitor(self) -> str:
        return self.of_role("monitor")

    @property
    def controller(self) -> str:
        return self.of_role("controller")

    @property
    def consumer(self) -> str:
        return self.of_role("consumer")

    @property
    def query(self) -> str:
        return self.of_role("query")

    @property
    def service(self) -> str:
        return self.of_role("service")

    @property
    def state(self) -> str:
        return self.of_role("state")

    @property
    def status(self) -> str:
        return self.of_role("status")

    @property
    def commit(self) -> str:
        return self.of_role("commit")

    @property
    def all(self) -> tuple[str, ...]:
        return (
            self.monitor,
            self.controller,
            self.consumer,
            self.query,
            self.service,
            self.state,
            self.status,
            self.commit,
        )

    def of_role(self, role: str) -> str:
        """The topic on which messages with this `topic_role` travel."""
        return f"{self.prefix}-{role}"

    def role_of(self, topic: str) -> str:
        """The reverse of `of_role`."""
        return topic.removeprefix(f"{self.prefix}-")

    def transactional_id(self, group: str) -> str:
        """The controller's id at the broker: only its newest holder can write."""
        return f"{self.prefix}-{group}-controller"
