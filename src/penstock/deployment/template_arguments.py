"""What a roll-out changed, as flags for `penstock consumer`. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from penstock.deployment.interface import DeploymentTemplate


def changes_as_flags(
    template: DeploymentTemplate,
    spark_options: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    """Flags win over the file and the environment. The other two are what the settings have."""
    flags = []
    if template.spark_settings:
        options = {**spark_options, **template.spark_settings}
        flags += ["--set", f"spark.options={json.dumps(options)}"]
    if template.transformations:
        changed = dict(tables)
        for topic, function in template.transformations.items():
            changed[topic] = {**changed.get(topic, {}), "transformation": function}
        flags += ["--set", f"lake.tables={json.dumps(changed)}"]
    return flags
