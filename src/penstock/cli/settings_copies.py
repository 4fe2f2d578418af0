"""The copies of the settings that a controller hands to its local consumers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.cli.options import given_flags
from penstock.controller.process.settings_in_force import GroupSettings
from penstock.settings import LoadedSettings, Settings, load_settings
from penstock.settings.snapshot import (
    consumers_digest,
    replace_file,
    snapshot_text,
    write_snapshot,
)


def origin_texts(loaded: LoadedSettings) -> dict[str, str]:
    """Where each value comes from, by the option's name."""
    found = {**loaded.derived, **loaded.origin}
    return {".".join(path): text for path, text in found.items()}


class SettingsCopies:
    def __init__(
        self,
        loaded: LoadedSettings,
        overrides: list[str] | None,
        bootstrap_server: str | None,
        *,
        outlive: bool,
    ) -> None:
        """`outlive`: the consumers go on without the controller, which then compares digests."""
        self._loaded = loaded
        self._flags: Mapping[str, Any] = given_flags(overrides, bootstrap_server)
        self._outlive = outlive
        self._directory = Path(loaded.settings.controller.directory).absolute()

    def started_with(self) -> GroupSettings:
        return self._group_settings(self._loaded)

    def read_again(self) -> GroupSettings:
        """The operator's file as it is now, with the same environment and flags."""
        first = self._loaded
        file = first.snapshot_of if first.is_snapshot else first.file
        return self._group_settings(load_settings(file, self._flags))

    def settings_of(self, file: Path) -> Settings:
        return load_settings(file, self._flags).settings

    def _group_settings(self, loaded: LoadedSettings) -> GroupSettings:
        own = self._loaded

        def on_adopted() -> None:
            # A controller that `penstock up` starts again begins with the copy.
            if own.is_snapshot and own.file is not None:
                replace_file(own.file, snapshot_text(loaded))

        return GroupSettings(
            loaded.settings,
            origin_texts(loaded),
            str(write_snapshot(self._directory, loaded)),
            consumers_digest(loaded, is_compared=self._outlive),
            on_adopted=on_adopted,
        )
