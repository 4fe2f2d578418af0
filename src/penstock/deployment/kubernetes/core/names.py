"""What our objects are called and how they are labelled. Pure.

Everything of a group is found by its labels, and nothing without them is ever touched. The name
holds the group, made a DNS label, and the consumer's number. Two groups whose names become the same
label are still told apart: the label `penstock.io/group` has the group's own name.
"""

import hashlib
import re
from collections.abc import Mapping

from penstock.model import ConsumerId

GROUP_LABEL = "penstock.io/group"
CONSUMER_LABEL = "penstock.io/consumer"
VERSION_ANNOTATION = "penstock.io/template-version"
TEMPLATE_ANNOTATION = "penstock.io/template"
MANAGED_BY = "penstock-controller"
# A Deployment's name becomes part of its pods' names and of a label: 63 characters in all.
_GROUP_CHARACTERS_MAX = 30


def dns_label(group: str) -> str:
    """The group's name in lower case letters, digits and dashes; one that had to change is marked.

    >>> dns_label("penstock"), dns_label("Orders.eu")
    ('penstock', 'orders-eu-e5578a')
    """
    plain = re.sub(r"[^a-z0-9]+", "-", group.lower()).strip("-")
    if plain == group and len(plain) <= _GROUP_CHARACTERS_MAX and plain[0].isalpha():
        return plain
    mark = hashlib.sha256(group.encode()).hexdigest()[:6]
    kept = plain[: _GROUP_CHARACTERS_MAX - 7].strip("-")
    return f"{kept}-{mark}" if kept[:1].isalpha() else f"g-{kept}-{mark}".replace("--", "-")


def object_name(group: str, consumer: ConsumerId) -> str:
    """Of the consumer's Deployment and of its claim."""
    return f"{dns_label(group)}-consumer-{int(consumer)}"


def selector_labels(group: str) -> dict[str, str]:
    """What every object of the group has, and no other."""
    return {
        "app.kubernetes.io/name": "penstock",
        "app.kubernetes.io/component": "consumer",
        "app.kubernetes.io/managed-by": MANAGED_BY,
        GROUP_LABEL: label_value(group),
    }


def all_labels(group: str, consumer: ConsumerId) -> dict[str, str]:
    return {
        **selector_labels(group),
        "app.kubernetes.io/instance": dns_label(group),
        CONSUMER_LABEL: str(int(consumer)),
    }


def selector_text(group: str) -> str:
    """The labels as the API takes them."""
    labels = selector_labels(group)
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def label_value(group: str) -> str:
    """The group's own name where it can be a label's value, else its DNS label."""
    is_value = re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", group)
    return group if is_value else dns_label(group)


def is_ours(labels: Mapping[str, str], group: str) -> bool:
    return all(labels.get(name) == value for name, value in selector_labels(group).items())


def consumer_of(labels: Mapping[str, str]) -> ConsumerId | None:
    """Which consumer an object belongs to; None when its label names none."""
    text = labels.get(CONSUMER_LABEL, "")
    is_number = text.isascii() and text.isdigit() and 0 < int(text) <= 100_000
    return ConsumerId(int(text)) if is_number else None
