"""Merges the user's pod template into ours, as `kubectl` does. Pure.

Mappings are merged. Lists of named entries (containers, variables, volumes) are merged by name,
mounts by path; any other list is replaced. Null removes a value. The template cannot remove the
labels and the consumer id.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.settings.sections.base import has_secret, is_secret_name

CONTAINER = "consumer"
# The keys that identify entries of a list, in this order.
_KEYS = ("mountPath", "name", "containerPort")


def merged(base: Any, over: Any) -> Any:
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        kept = {name: value for name, value in base.items() if name not in over}
        changed = {
            name: merged(base.get(name), value) for name, value in over.items() if value is not None
        }
        return {**kept, **changed}
    if _is_list(base) and _is_list(over):
        return _merged_lists(base, over)
    return _without_nulls(over)


def _merged_lists(base: Sequence[Any], over: Sequence[Any]) -> list[Any]:
    key = next((key for key in _KEYS if _all_have(base, key) and _all_have(over, key)), None)
    if key is None or not base:
        return [_without_nulls(one) for one in over]
    found = {one[key]: one for one in base}
    for one in over:
        # A variable is replaced as a whole: it cannot have both a value and a source.
        is_variable = "value" in one or "valueFrom" in one
        before = None if is_variable else found.get(one[key])
        found[one[key]] = merged(before, one) if before is not None else _without_nulls(one)
    return list(found.values())


def _all_have(entries: Sequence[Any], key: str) -> bool:
    return all(isinstance(one, Mapping) and key in one for one in entries)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    if _is_list(value):
        return [_without_nulls(one) for one in value]
    return value


def invalid_reason(template: Any) -> str | None:
    """Why this cannot be merged into a pod template; None when it can."""
    if not isinstance(template, Mapping):
        return "it is not a mapping"
    unknown = sorted(set(template) - {"metadata", "spec", "apiVersion", "kind"})
    if unknown:
        return f"a pod template has metadata and spec, not {unknown[0]!r}"
    for part in ("metadata", "spec"):
        if not isinstance(template.get(part, {}), Mapping):
            return f"{part} is not a mapping"
    containers = template.get("spec", {}).get("containers", [])
    if not _is_list(containers) or not _all_have(containers, "name"):
        return "every container needs a name; ours is `consumer`"
    return None


def secret_in_clear(template: Mapping[str, Any]) -> str | None:
    """What has a secret as its value, a variable or an argument; None when nothing has.

    A template is copied: into the settings map, the Deployments and the record of the state.
    """
    spec = template.get("spec", {})
    for kind in ("containers", "initContainers"):
        for container in _mappings(spec.get(kind)):
            for one in _mappings(container.get("env")):
                name, value = str(one.get("name", "")), one.get("value")
                if value and (is_secret_name(name) or has_secret(str(value))):
                    return f"the variable {name}"
            for place in ("command", "args"):
                given: Any = container.get(place)
                if _is_list(given) and any(has_secret(str(one)) for one in given):
                    return f"an entry of {place}"
    return None


def _mappings(entries: Any) -> list[Mapping[str, Any]]:
    return [one for one in entries if isinstance(one, Mapping)] if _is_list(entries) else []
