"""Every parser of foreign bytes. A new one is a line here; tests/fuzz asks for it."""

from kit.fuzz.control_parsers import CONTROL_PARSERS
from kit.fuzz.lake_parsers import LAKE_PARSERS
from kit.fuzz.page_parsers import PAGE_PARSERS
from kit.fuzz.process_parsers import PROCESS_PARSERS
from kit.fuzz.settings_parsers import SETTINGS_PARSERS

PARSERS = (*CONTROL_PARSERS, *SETTINGS_PARSERS, *LAKE_PARSERS, *PROCESS_PARSERS, *PAGE_PARSERS)
