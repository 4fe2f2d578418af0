"""Writes a run as one HTML file that needs no server. It needs no extra of the package either."""

from pathlib import Path

from penstock.errors import PenstockError
from penstock.page.core.one_file import one_file
from penstock.page.core.view import Json
from penstock.page.process.static_files import static_files, texts_of


def write_run(file: Path, run: Json) -> None:
    page = one_file(texts_of(static_files()), run)
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise PenstockError(
            f"{file} cannot be written: {error.strerror}.", remedy="Name another file."
        ) from error
