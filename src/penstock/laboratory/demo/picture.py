"""Draws one run of the demo: the load, the consumers that carried it, and what was killed."""

import base64
import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

from penstock.laboratory.demo.observation import HandOver, Moment
from penstock.laboratory.demo.story import DemoIncident

_COLOURS = "tab20"


def draw(
    moments: Sequence[Moment],
    incidents: Sequence[DemoIncident],
    capacity_bytes_per_s: float,
    file: Path,
) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 -- after the backend is chosen

    figure, (above, below) = plt.subplots(
        2, 1, figsize=(11, 7.5), sharex=True, height_ratios=[3, 2]
    )
    times = [one.at_s for one in moments]
    consumers = sorted({consumer for one in moments for consumer in one.load_by_consumer})
    layers = [
        [one.load_by_consumer.get(consumer, 0.0) / 1e6 for one in moments] for consumer in consumers
    ]
    colours = plt.get_cmap(_COLOURS)
    above.stackplot(
        times,
        layers or [[0.0] * len(times)],
        labels=[f"consumer {consumer}" for consumer in consumers],
        colors=[colours(index % 20) for index in range(max(1, len(consumers)))],
        alpha=0.85,
    )
    written = [one.written_bytes_per_s / 1e6 for one in moments]
    above.plot(times, written, color="black", linewidth=1.5, label="written to Kafka")
    above.set_ylabel("MB/s")
    above.set_title("Write speed, and the consumer that carries it")
    above.legend(loc="upper left", ncols=4, fontsize=8)
    above.margins(x=0)
    above.set_ylim(bottom=0, top=max(written, default=1.0) * 1.5)
    below.step(
        times, [len(one.load_by_consumer) for one in moments], where="post", label="consumers"
    )
    below.step(
        times,
        [one.consumers_needed for one in moments],
        where="post",
        linestyle="--",
        label=f"fewest possible ({capacity_bytes_per_s / 1e6:g} MB/s each)",
    )
    below.set_ylabel("consumers")
    below.set_xlabel("seconds")
    below.set_ylim(bottom=0)
    below.legend(loc="upper left", fontsize=8)
    top = below.get_ylim()[1]
    for incident in incidents:
        for axes in (above, below):
            axes.axvline(incident.at_s, color="crimson", linewidth=1, linestyle=":")
        below.text(
            incident.at_s + 0.5, top * 0.55, incident.explanation, color="crimson", fontsize=8,
            rotation=90, va="center",
        )  # fmt: skip
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    plt.close(figure)


def write_page(
    picture: Path, rows: Mapping[str, str], moved: Sequence[HandOver], file: Path
) -> None:
    """Write the picture, the figures and every hand-over as one self-contained HTML file."""
    image = base64.b64encode(picture.read_bytes()).decode()
    table = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in rows.items()
    )
    hand_overs = "".join(
        f"<tr><td>{html.escape(one.partition)}<td>{one.from_consumer}<td>{one.to_consumer}"
        f"<td>{one.seconds:.2f} s</tr>"
        for one in moved
    )
    file.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Penstock demo</title>"
        "<style>body{font-family:sans-serif;max-width:70em;margin:2em auto}"
        "th,td{text-align:left;padding-right:2em;font-weight:normal}img{max-width:100%}</style>"
        f"<h1>Penstock demo</h1><table>{table}</table>"
        f'<p><img alt="load and consumers over time" src="data:image/png;base64,{image}">'
        "<h2>Hand-overs</h2><table><tr><th>partition<th>from<th>to<th>not read for</tr>"
        f"{hand_overs}</table>",
        encoding="utf-8",
    )
