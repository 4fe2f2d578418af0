"""What was known of the capacity for a topic whose transformation was changed.

It was measured with the former one. When the last consumer of that is gone, what the others have
shown counts. Until they have shown anything the former figure stands as an assumption, which keeps
the group calm, and which the next measurement and the next calibration replace.
"""

from penstock.controller.core.capacity import Source, alike, measured_together
from penstock.controller.core.state import KnownCapacity, RollOut
from penstock.controller.core.step_draft import StepDraft
from penstock.settings.sections import Settings


def changed_by(roll_out: RollOut) -> frozenset[str]:
    """The topics that consumers carry otherwise after it.

    Another image may have other code for every topic or for none: nothing is taken from it.
    """
    found = frozenset(roll_out.request.transformations)
    before, after = roll_out.former_settings, roll_out.new_settings
    if before is None or after is None:
        return found
    return found | changed_between(before, after.settings)


def changed_between(before: Settings, after: Settings) -> frozenset[str]:
    """The topics whose tables the settings describe otherwise."""
    old, new = before.lake.tables, after.lake.tables
    return frozenset(topic for topic in {*old, *new} if old.get(topic) != new.get(topic))


def measure_anew(draft: StepDraft, roll_out: RollOut) -> None:
    """At the end of a roll-out, also of one that was rolled back."""
    known = draft.state.capacities
    found: dict[str, KnownCapacity] = {}
    for topic in sorted(changed_by(roll_out) & known.keys()):
        shown = [
            record.capacity_by_topic[topic]
            for record in draft.consumers.now.values()
            if topic in record.capacity_by_topic
        ]
        if shown:
            found[topic] = measured_together(shown)
        elif roll_out.undoes is None:
            found[topic] = alike(known[topic].bytes_per_s, Source.ASSUMED)
    if found:
        draft.change(capacities={**known, **found})
