"""The settings: every option with its type, unit, default and sentence, and their loading."""

from penstock.settings.change import changed_settings
from penstock.settings.load import LoadedSettings, load_settings
from penstock.settings.secret import Secret
from penstock.settings.sections import Settings

__all__ = ["LoadedSettings", "Secret", "Settings", "changed_settings", "load_settings"]
