"""How a reader of a study sees one of its runs: the commands that write it as a file to play."""

from collections.abc import Iterable, Sequence


def lines_about_playing(commands: Sequence[str]) -> Iterable[str]:
    yield "## Play a run of it"
    yield ""
    yield (
        "`penstock simulate` replays the same streams (by kind, delta and seed), and writes a run "
        "as one HTML file: [the page](../../page.md#a-run-as-one-file) with a slider. Open it in a "
        "browser."
    )
    yield ""
    yield "<!-- not run: docs/sizing.md has a shorter one, which is run -->"
    yield "```sh"
    yield from commands
    yield "```"
