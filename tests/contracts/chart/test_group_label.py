"""Which pods the chart's policies and budgets are for."""

from pathlib import Path

import pytest

from kit.kubernetes.helm import of_kind, rendered
from penstock.deployment.kubernetes.core.names import label_value

pytestmark = pytest.mark.timeout(1300)  # the first run on a machine compiles Helm


@pytest.mark.parametrize(
    "group", ["orders", "Orders.eu", "_orders_", "9_", "...", "x" * 70, "-a-b-"]
)
def test_the_chart_selects_the_consumers_of_this_group_alone(helm: Path, group: str) -> None:
    """By the label that the controller writes, also where the group's name cannot be one."""
    objects = rendered(helm, settings=[f"settings.lake.group={group}"])
    policy = of_kind(objects, "NetworkPolicy")["penstock-consumer"]
    wanted = policy["spec"]["podSelector"]["matchLabels"]
    assert wanted["penstock.io/group"] == label_value(group)
    budget = of_kind(objects, "PodDisruptionBudget")["penstock-consumers"]
    assert budget["spec"]["selector"]["matchLabels"] == wanted
