"""After how long what was written in each second was visible, but for the share that may be late.

A second is fresh when so much of what was written in it, in all partitions together, was visible
within the objective as the objective asks for. That is its own measure: much that is written in a
few late seconds says little about the others, and the bytes of an hour say little about a second.
"""

import numpy as np

from penstock.laboratory.studies.objective.loads import Speeds

# What is written in a second, and what comes in a batch, is looked at in so many parts.
_PARTS_OF_A_SECOND = 2
_PARTS_OF_A_BATCH = 4


def visible_after_s(
    written: Speeds, carried: Speeds, batch_s: Speeds, cycle_s: Speeds, share: float
) -> list[float]:
    """For each second: after how long this share of what was written in it was visible.

    `written` and `carried` are the bytes of each partition until the begin of each second, and
    until the end of the last. `batch_s` and `cycle_s` say for each second how long a batch takes
    and how long it is from the begin of one to the begin of the next. What is not carried until
    the end counts as carried then.
    """
    ages_s = _ages_s(written, carried, batch_s, cycle_s)
    # Every age of a second in one row, with the bytes that have it.
    weights = np.tile(np.diff(written, axis=0), (1, _PARTS_OF_A_SECOND * _PARTS_OF_A_BATCH))
    order = np.argsort(ages_s, axis=1)
    until = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    enough = (until >= share * until[:, -1:] * (1 - 1e-9)).argmax(axis=1)
    rows = np.arange(len(order))
    found = np.where(until[:, -1] > 0, ages_s[rows, order[rows, enough]], 0.0)
    return [float(age_s) for age_s in found]


def _ages_s(written: Speeds, carried: Speeds, batch_s: Speeds, cycle_s: Speeds) -> Speeds:
    """A row for each second, with every partition once for each part of it and of a batch."""
    seconds, partitions = batch_s.shape
    begins, ends = np.arange(seconds), np.arange(seconds + 1)
    columns = np.arange(partitions)
    found = []
    for part in range(_PARTS_OF_A_SECOND):
        within = (part + 0.5) / _PARTS_OF_A_SECOND
        place = written[:-1] + within * np.diff(written, axis=0)
        carried_at = np.stack([np.interp(place[:, n], carried[:, n], ends) for n in columns], 1)
        second = np.minimum(seconds - 1, carried_at.astype(np.int64))
        waited_s = carried_at - (begins + within)[:, None] + batch_s[second, columns]
        cycles_s = cycle_s[second, columns]
        of_batch = [(n + 0.5) / _PARTS_OF_A_BATCH for n in range(_PARTS_OF_A_BATCH)]
        found += [waited_s + cycles_s * one for one in of_batch]
    return np.concatenate(found, axis=1)
