"""Names and labels of the Kubernetes objects. Pure.

A group's objects are found by their labels; an object without them is never touched. A name
consists of the group as a DNS label and the consumer's number. The label `penstock.io/group` keeps
the group's own name, so groups with the same DNS label stay distinct.
"""

import hashlib
import re
from collections.abc import Mapping

from penstock.model import ConsumerId
from penstock.model.consumer_id import CONSUMER_ID_MAX, CONSUMER_ID_MIN

GROUP_LABEL = "penstock.io/group"
CONSUMER_LABEL = "penstock.io/consumer"
VERSION_ANNOTATION = "penstock.io/template-version"
TEMPLATE_ANNOTATION = "penstock.io/template"
MANAGED_BY = "penstock-controller"
# What we make is in no repository of a GitOps tool, and belongs there as little as a pod does.
NOT_PRUNED = {
    "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
    "argocd.argoproj.io/sync-options": "Prune=false",
}
# A Deployment's name becomes part of its pods' names and of a label: 63 characters in all.
_GROUP_CHARACTERS_MAX = 30


def dns_label(group: str) -> str:
    """The group's name as a DNS label; a changed name gets a hash, so that it stays unique.

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
    """The name of the consumer's Deployment and of its claim."""
    return f"{dns_label(group)}-consumer-{int(consumer)}"


def selector_labels(group: str) -> dict[str, str]:
    """The labels that exactly the group's objects have."""
    return {
        "app.kubernetes.io/name": "penstock",
        "app.kubernetes.io/component": "consumer",
        "app.kubernetes.io/managed-by": MANAGED_BY,
        GROUP_LABEL: label_value(group),
    }


def all_labels(group: str, consumer: ConsumerId) -> dict[str, str]:
    """The labels of one consumer's objects.

    `app.kubernetes.io/instance` is not among them: Argo CD takes what has the name of an
    application there for a part of it, and removes it because no repository has it.
    """
    return {**selector_labels(group), CONSUMER_LABEL: str(int(consumer))}


def selector_text(group: str) -> str:
    """The labels in the form of an API query."""
    labels = selector_labels(group)
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


def label_value(group: str) -> str:
    """The group's own name if it is a valid label value, else its DNS label."""
    is_value = re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", group)
    return group if is_value else dns_label(group)


def is_ours(labels: Mapping[str, str], group: str) -> bool:
    return all(labels.get(name) == value for name, value in selector_labels(group).items())


def consumer_of(labels: Mapping[str, str]) -> ConsumerId | None:
    """The consumer that the labels name; None when they name none."""
    text = labels.get(CONSUMER_LABEL, "")
    is_number = (
        text.isascii() and text.isdigit() and CONSUMER_ID_MIN <= int(text) <= CONSUMER_ID_MAX
    )
    return ConsumerId(int(text)) if is_number else None
