"""What the group is for: how fresh the lake is."""

from penstock.packing.objective import (
    FRESHNESS_S_DEFAULT,
    FRESHNESS_S_MAX,
    FRESHNESS_S_MIN,
    SHARE_DEFAULT,
)
from penstock.settings.sections.base import Section, option
from penstock.settings.units import Duration


class ObjectiveSettings(Section):
    """How fresh the lake is. Head room, batches, catch-up, scale-down and spares follow from it."""

    freshness: Duration = option(
        FRESHNESS_S_DEFAULT,
        "How old a record may be when it is visible in the lake. Options that follow from it say "
        "so, and one that you set stays as you set it.",
        ge=FRESHNESS_S_MIN,
        le=FRESHNESS_S_MAX,
    )
    share: float = option(
        SHARE_DEFAULT,
        "The share of the records for which `objective.freshness` holds.",
        ge=0.5,
        le=0.9999,
    )
