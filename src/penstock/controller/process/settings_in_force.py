"""The settings that are in force, beside the status, for `penstock settings` and `penstock up`.

The operator's settings with the changes of requests, each value with where it comes from. A secret
is shown as `***`, as everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.controller.core.settings import with_overrides
from penstock.controller.core.state import State
from penstock.controller.process.template_changes import changes_of
from penstock.deployment import DeploymentTemplate
from penstock.settings import Settings
from penstock.settings.objective import with_objective
from penstock.settings.tree import known_options

IN_FORCE_NAME = "settings-in-force.json"


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What a controller was started with, or read again since."""

    settings: Settings
    # By option, only of what was set.
    origins: Mapping[str, str] = field(default_factory=dict)
    # The copy with which consumers are started, and the digest of what concerns them.
    consumers_file: str | None = None
    consumers_digest: str = ""
    # What their pods are made of, where they are pods.
    pod_plan: Mapping[str, Any] = field(default_factory=dict)
    # Called when these settings come into force in a running controller.
    on_adopted: Callable[[], None] = lambda: None


def settings_in_force(
    state: State,
    group: GroupSettings,
    template: DeploymentTemplate,
    dropped: Sequence[str],
    unix_ms: int,
) -> dict[str, Any]:
    in_force = with_overrides(state.chosen, state.overrides, state.followed)
    reasons = with_objective(in_force, state.followed)[1]
    values = in_force.model_dump(mode="json")
    own = state.chosen.model_dump(mode="json")
    options, changes = {}, []
    for path in known_options():
        name = ".".join(path)
        origin = reasons.get(name) or group.origins.get(name, "default")
        value = _at(values, path)
        if name in state.overrides:
            origin = _request(state, name, unix_ms)
            changes.append(
                {
                    "option": name,
                    "value": value,
                    "origin": origin,
                    "otherwise": _at(own, path),
                }
            )
        options[name] = {"value": value, "origin": origin}
    for name, text in changes_of(template).items():
        otherwise = template.instead_of.get(name) or None
        origin = f"roll-out {template.version}"
        changes.append({"option": name, "value": text, "origin": origin, "otherwise": otherwise})
    return {
        "at_unix_ms": unix_ms,
        "options": options,
        "live_changes": changes,
        "dropped": list(dropped),
    }


def _at(tree: Any, path: Sequence[str]) -> Any:
    for name in path:
        tree = tree[name]
    return tree


def _request(state: State, option: str, unix_ms: int) -> str:
    origin = state.override_origins.get(option)
    if origin is None:
        return "a request of an earlier release"
    at = datetime.fromtimestamp((unix_ms - state.now_ms + origin.at_ms) / 1000, UTC)
    by = f" by {origin.requested_by}" if origin.requested_by else ""
    return f"request {origin.request_id} of {at:%Y-%m-%d %H:%M} UTC{by}"
