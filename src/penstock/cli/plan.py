"""`penstock plan`: what a repack would do now, before anything does it."""

from typing import Any

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.group_status import read_status, require_news
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.errors import NotFeasibleError, PenstockError
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import PackingProblem, algorithm_named
from penstock.packing.lower_bound import consumers_at_least
from penstock.settings.units import format_speed

CHANGES_PENDING = 7


def plan(
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show which partitions a repack would move now, and what that costs. Changes nothing.

    Exit code 0 when nothing would change, 7 when something would, 6 when the most consumers allowed
    cannot carry the load, 1 when the controller is silent: the group may have changed since.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    found = read_status(loaded)
    require_news(found)
    problem = _problem(found["question"])
    wanted = found["settings"]
    algorithm = algorithm_named(wanted["algorithm"] or "CHAIN", wanted["algorithm_knob"])
    packing = algorithm.pack(problem)
    moves = _moves(problem, packing.assignment)
    data = {
        "consumers_now": sum(1 for held in problem.current.values() if held),
        "consumers_then": len(packing.assignment),
        "consumers_at_least": consumers_at_least(problem),
        "moves": moves,
        "oversize": [str(one) for one in packing.oversize],
        "overloaded": [int(one) for one in packing.overloaded],
    }
    table = Table("partition", "from", "to", "speed", box=None)
    for move in moves:
        speed = format_speed(round(move["write_speed_bytes_per_s"]))
        table.add_row(move["partition"], str(move["from"] or "-"), str(move["to"]), speed)
    say(
        f"{data['consumers_now']} consumers now, {data['consumers_then']} then, at least "
        f"{data['consumers_at_least']} are needed; {len(moves)} partitions would move."
    )
    print_data(data, output, table)
    if packing.overloaded:
        raise NotFeasibleError(
            f"{len(packing.overloaded)} consumers would be over their capacity.",
            remedy="Raise controller.consumers_max or packing.capacity.",
        )
    if moves:
        raise typer.Exit(CHANGES_PENDING)


def _problem(asked: dict[str, Any]) -> PackingProblem:
    """The question as the controller would put it: backlogs and learned capacities included."""
    if not asked["load_bytes_per_s"]:
        raise PenstockError("The controller has no speeds yet.", remedy="Is the monitor running?")
    return PackingProblem(
        load_bytes_per_s=_by_partition(asked["load_bytes_per_s"]),
        current=Assignment(
            {
                ConsumerId(int(consumer)): [TopicPartition.parse(name) for name in held]
                for consumer, held in asked["current"].items()
            }
        ),
        capacity_bytes_per_s=asked["capacity_bytes_per_s"],
        capacity_bytes_per_s_by_consumer={
            ConsumerId(int(consumer)): capacity
            for consumer, capacity in asked["capacity_bytes_per_s_by_consumer"].items()
        },
        partitions_per_consumer_max=asked["partitions_per_consumer_max"],
        consumers_max=asked["consumers_max"],
        forecast_bytes_per_s=_by_partition(asked["forecast_bytes_per_s"]),
    )


def _by_partition(figures: dict[str, float]) -> dict[TopicPartition, float]:
    return {TopicPartition.parse(name): float(figure) for name, figure in figures.items()}


def _moves(problem: PackingProblem, then: Assignment) -> list[dict[str, Any]]:
    now = problem.current
    return [
        {
            "partition": str(partition),
            "from": now.owner_of(partition),
            "to": owner,
            "write_speed_bytes_per_s": problem.load_bytes_per_s[partition],
        }
        for partition, owner in sorted(then.owners.items())
        if now.owner_of(partition) != owner
    ]
