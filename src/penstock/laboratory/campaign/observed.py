"""What a campaign does, what was observed during it, and both counts of its records."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.laboratory.campaign.deliveries import DeliveryCheck
from penstock.laboratory.campaign.faults import Fault, Injected
from penstock.laboratory.campaign.lake_reading import CommitTime
from penstock.laboratory.campaign.producers import Style
from penstock.laboratory.campaign.schedule import drawn_faults
from penstock.laboratory.campaign.watching import Watched
from penstock.laboratory.load import RecordForm
from penstock.verification import VerificationResult


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """What a campaign does. The same seed harms the same parts at the same times."""

    seed: int
    minutes: float
    fault_every_s: float = 10.0
    busy_processes: int = 0
    records_per_s: float = 3500.0

    @property
    def topics(self) -> Mapping[str, int]:
        return {"keyed": 6, "plain": 6, "transactional": 6}

    @property
    def faults(self) -> tuple[Fault, ...]:
        return drawn_faults(self.seed, self.minutes, self.topics, every_s=self.fault_every_s)

    def style(self, topic: str) -> Style:
        """Each topic is written in another way; a topic that a fault made, like `plain`."""
        form = {
            "keyed": RecordForm(250, keys=100, compressible=True),
            "transactional": RecordForm(200, keys="id"),
        }.get(topic, RecordForm(200))
        bytes_per_s = self.records_per_s / sum(self.topics.values()) * form.record_bytes
        return Style(
            bytes_per_s,
            form,
            compression={"keyed": "zstd", "transactional": "lz4"}.get(topic, "none"),
            is_transactional=topic == "transactional",
        )


@dataclass(frozen=True, slots=True)
class CampaignCheck:
    """Both counts: the lake against Kafka's log, and against what the producers were told."""

    verification: VerificationResult
    deliveries: DeliveryCheck

    @property
    def lost(self) -> int:
        return max(sum(one.lost for one in self.verification.partitions), self.deliveries.lost)

    @property
    def doubled(self) -> int:
        by_offset = sum(one.duplicated for one in self.verification.partitions)
        return max(by_offset, self.deliveries.doubled)

    @property
    def is_exact(self) -> bool:
        return self.verification.is_exact and self.deliveries.is_exact


@dataclass(slots=True)
class CampaignRun:
    """Everything observed; times in seconds since the campaign began."""

    length_s: float = 0.0
    injected: list[Injected] = field(default_factory=list)
    not_injected: list[str] = field(default_factory=list)
    commits: list[tuple[float, CommitTime]] = field(default_factory=list)
    watched: Watched = field(default_factory=Watched)
    has_drained: bool = False

    @property
    def last_fault_over_s(self) -> float:
        return max((one.over_s for one in self.injected), default=0.0)
