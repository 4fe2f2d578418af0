"""`penstock simulate`: its output, files and errors."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from kit.packing.stream_files import write_stream
from kit.program import invoked
from penstock.errors import PenstockError, UsageError
from penstock.laboratory.packing_replay.generate import Kind, Recipe, generate
from penstock.laboratory.packing_replay.stream import Stream

CAPACITY = 100
STREAM = generate(Recipe(Kind.WALK, 30, 10, 21, 5), CAPACITY)


def run(*arguments: str | Path) -> str:
    result = invoked("simulate", *map(str, arguments))
    if result.exception is not None:
        raise result.exception
    return result.stdout


def refused(*arguments: str | Path) -> str:
    with pytest.raises(UsageError) as raised:
        run(*arguments)
    return raised.value.message


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "speeds.csv"
    write_stream(STREAM, path)
    return path


def rescored(stream: Stream, lines: list[str]) -> tuple[list[int], float]:
    """Consumers per measurement and R, computed only from the written lines."""
    owners: list[dict[str, str]] = []
    for number, line in enumerate(lines):
        entry = json.loads(line)
        assert entry["measurement"] == number
        speeds = {str(p): s for p, s in stream.speeds(number).items()}
        for held in entry["consumers"].values():
            assert held == sorted(held, key=lambda name: int(name.rpartition("-")[2]))
            assert 0 <= sum(speeds[name] for name in held) <= CAPACITY
        owners.append({name: c for c, held in entry["consumers"].items() for name in held})
        assert sorted(owners[-1]) == sorted(speeds)
    moved = [
        sum(
            speed
            for partition, speed in stream.speeds(number).items()
            if after[str(partition)] != before[str(partition)]
        )
        / CAPACITY
        for number, (before, after) in enumerate(pairwise(owners), start=1)
    ]
    return [len(set(owner.values())) for owner in owners], sum(moved) / len(moved)


@pytest.mark.parametrize("name", ["CHAIN", "chain@0", "mwf", "NF", "BFD"])
def test_scores_can_be_recomputed_from_the_assignments(
    recorded: Path, tmp_path: Path, name: str
) -> None:
    """Each line has every partition once within capacity, and gives the printed scores."""
    out = tmp_path / "out.jsonl"
    printed = run(
        "--stream", recorded, "--capacity", "100", "--algorithm", name, "--assignments", out,
        "-o", "json",
    )  # fmt: skip
    row = json.loads(printed)[0]
    consumers, r = rescored(STREAM, out.read_text().splitlines())
    assert row["r"] == pytest.approx(r, abs=1e-4)
    assert row["consumers_mean"] == pytest.approx(sum(consumers) / len(consumers), abs=1e-3)
    assert row["consumers_max"] == max(consumers)


def test_the_default_is_ours_on_every_measurement(recorded: Path) -> None:
    """Without options CHAIN packs on every measurement."""
    rows = json.loads(run("--stream", recorded, "--capacity", "100", "-o", "json"))
    assert [(row["algorithm"], row["runs"]) for row in rows] == [("CHAIN", 21)]
    again = json.loads(run("--stream", recorded, "--capacity", "100", "--every", "-o", "json"))
    assert again[0]["r"] == rows[0]["r"]


def test_through_the_trigger_it_runs_seldom(recorded: Path) -> None:
    """With --trigger the packer runs less often, and further columns appear."""
    rows = json.loads(run("--stream", recorded, "--capacity", "300", "--trigger", "-o", "json"))
    assert 1 <= rows[0]["runs"] < 21
    assert "moves/h" in run("--stream", recorded, "--capacity", "300", "--trigger")


def test_several_algorithms_write_a_file_each(recorded: Path, tmp_path: Path) -> None:
    """Each algorithm gets a file such as OUT.MWF.jsonl and a row of the table."""
    run("--stream", recorded, "--capacity", "100", "--algorithm", "MWF", "--algorithm",
        "CHAIN@0.3", "--assignments", tmp_path / "out.jsonl")  # fmt: skip
    written = sorted(path.name for path in tmp_path.glob("*.jsonl"))
    assert written == ["out.CHAIN@0.3.jsonl", "out.MWF.jsonl"]


def test_the_knob_has_a_flag_and_groups_have_names() -> None:
    """`--knob` applies to CHAIN; `published` names twelve; `front` names CHAIN with seven knobs."""
    small = ("--generate", "walk", "--partitions", "5", "--measurements", "2", "-o", "json")
    assert json.loads(run(*small, "--knob", "0.25"))[0]["algorithm"] == "CHAIN@0.25"
    assert len(json.loads(run(*small, "--algorithm", "published"))) == 12
    assert len(json.loads(run(*small, "--algorithm", "all"))) == 13
    names = [row["algorithm"] for row in json.loads(run(*small, "--algorithm", "front"))]
    assert names[0] == "CHAIN@0"
    assert "CHAIN" in names


@pytest.mark.parametrize(
    "chosen",
    [
        ("--algorithm", "MWF"),
        ("--algorithm", "published"),
        ("--algorithm", "front"),
        ("--algorithm", "chain@0.3"),
        ("--algorithm", "NF", "--algorithm", "CHAIN@0.3"),
        ("--set", "packing.algorithm=MWF"),
        ("--set", "packing.algorithm=CHAIN@0.3"),
    ],
)
def test_a_knob_without_effect_is_refused(chosen: tuple[str, ...]) -> None:
    """The error says which algorithms have a knob and which have none."""
    message = refused("--generate", "walk", "--knob", "0.25", *chosen)
    assert message.startswith("--knob 0.25 has no effect on ")
    assert chosen[-1].rpartition("=")[2] in message
    assert "CHAIN has a knob" in message
    assert "NF, NFD, FF, FFD, WF, WFD, BF, BFD, MWF, MWFP, MBF, MBFP have none" in message


@pytest.mark.parametrize("chosen", [("MWF", "chain"), ("all",)])
def test_a_knob_applies_to_chain_among_others(chosen: tuple[str, ...]) -> None:
    """The other algorithms are compared with CHAIN at this knob."""
    names = [part for name in chosen for part in ("--algorithm", name)]
    small = ("--generate", "walk", "--partitions", "5", "--measurements", "2", "-o", "json")
    rows = json.loads(run(*small, "--knob", "0.25", *names))
    shown = [row["algorithm"] for row in rows]
    assert "CHAIN@0.25" in shown
    assert "CHAIN" not in shown
    assert "MWF" in shown


@pytest.mark.parametrize("kind", ["walk", "wave", "burst", "hot"])
def test_generated_streams_need_no_file(kind: str) -> None:
    """Every option of a generated stream is accepted."""
    printed = run("--generate", kind, "--partitions", "12", "--delta", "5", "--measurements", "9",
                  "--seed", "4", "--start", "50", "-o", "json")  # fmt: skip
    assert json.loads(printed)[0]["runs"] == 9


@pytest.mark.parametrize("suffix", [".png", ".html"])
def test_the_picture(recorded: Path, tmp_path: Path, suffix: str) -> None:
    """The picture is a PNG, or one HTML file that loads nothing else."""
    path = tmp_path / f"picture{suffix}"
    run("--stream", recorded, "--capacity", "100", "--algorithm", "MWF", "--plot", path)
    content = path.read_bytes()
    if suffix == ".png":
        assert content.startswith(b"\x89PNG")
    else:
        assert content.count(b"<svg") == 1
        assert b"lower bound" in content
        assert b"src=" not in content
        assert b"<script" not in content


@pytest.mark.parametrize("capacity", ["0", "-5", "nan", "inf", "much", ""])
def test_wrong_capacities_are_refused(recorded: Path, capacity: str) -> None:
    """Each wrong capacity is one error."""
    assert "--capacity" in refused("--stream", recorded, "--capacity", capacity)


def test_capacity_may_have_a_unit(recorded: Path) -> None:
    """`1kB/s` is a thousand bytes a second."""
    rows = json.loads(run("--stream", recorded, "--capacity", "1kB/s", "-o", "json"))
    assert rows[0]["consumers_max"] <= 3


def test_wrong_options_are_refused(recorded: Path, tmp_path: Path) -> None:
    """Each wrong option is one error message."""
    stream = ("--stream", recorded, "--capacity", "100")
    assert "either --stream" in refused("--capacity", "100")
    assert "either --stream" in refused(*stream, "--generate", "walk")
    assert "either --every" in refused(*stream, "--every", "--trigger")
    assert "no packing algorithm 'XYZ'" in refused(*stream, "--algorithm", "XYZ")
    assert "from 0 to 1" in refused(*stream, "--knob", "7")
    assert ".png or .html" in refused(*stream, "--plot", "picture.gif")
    assert "cannot write" in refused(*stream, "--assignments", tmp_path / "no" / "out.jsonl")
    assert "cannot write" in refused(*stream, "--plot", tmp_path / "no" / "picture.png")
    assert "--partitions" in refused("--generate", "walk", "--partitions", "0")
    assert "--interval" in refused(*stream, "--interval", "5")
    assert "--interval" in refused(*stream, "--interval", "0s")


def test_settings_apply(recorded: Path) -> None:
    """A maximum of consumers set by the operator holds in the simulation too."""
    bound = ("--set", "controller.consumers_max=3")
    rows = json.loads(run("--stream", recorded, "--capacity", "100", *bound, "-o", "json"))
    assert rows[0]["consumers_max"] == 3
    assert rows[0]["over_capacity_s"] > 0


def test_an_export_is_one_file_for_each_algorithm(recorded: Path, tmp_path: Path) -> None:
    """Each names its algorithm and its figures; the file of one algorithm keeps its name."""
    file = tmp_path / "run.html"
    common = ("--stream", recorded, "--capacity", "100", "--export", file, "-o", "json")
    rows = json.loads(run(*common, "--algorithm", "CHAIN", "--algorithm", "MWF"))
    for row in rows:
        text = (tmp_path / f"run.{row['algorithm']}.html").read_text(encoding="utf-8")
        assert f"{row['algorithm']}: 30 partitions, 21 measurements" in text
        assert f'"consumers, mean":"{row["consumers_mean"]:g}"' in text
    assert not file.exists()
    run(*common)
    assert "CHAIN: 30 partitions" in file.read_text(encoding="utf-8")


def test_an_export_is_html(recorded: Path, tmp_path: Path) -> None:
    """Another kind of file is refused before anything runs, one that cannot be written after."""
    assert "writes an .html file" in refused("--stream", recorded, "--export", tmp_path / "run.png")
    with pytest.raises(PenstockError, match="cannot be written"):
        run("--stream", recorded, "--export", tmp_path / "none" / "run.html")
