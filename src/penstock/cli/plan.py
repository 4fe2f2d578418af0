"""`penstock plan`: what a repack would change now, as `future - current`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.group_status import read_status, require_news, status_file
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.cli.speeds import duration_of, measured_speeds
from penstock.controller.core.settings import controller_settings
from penstock.errors import NotFeasibleError, PenstockError
from penstock.model import Assignment, ConsumerId, ConsumerListDiff, TopicPartition
from penstock.model.sentences import counted, speed_text
from penstock.packing import Packing, PackingProblem, algorithm_named
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.speed_memory import SpeedMemory, remember
from penstock.packing.trigger import Reason, TriggerPolicy, load_of_assignment, problem_for

CHANGES_PENDING = 7


def plan(
    over: Annotated[
        str, typer.Option(help="Without a controller: how long to measure the speeds.")
    ] = "5s",
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Show what a repack would change now, and what that costs. Changes nothing.

    Exit code 0 when nothing would change, 7 when something would, 6 when the most consumers allowed
    cannot carry the load, 1 when the controller has stopped reporting: the group may have changed
    since.

    Where no controller has run, it plans a new group from speeds that it measures for `--over`.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if status_file(loaded).exists():
        found = read_status(loaded)
        require_news(found)
        problem = _problem(found["question"])
        algorithm = found["settings"]["algorithm"]
    else:
        say(
            f"No controller has written {status_file(loaded)}: this is the plan of a new group. "
            "For that of a running group name its directory: --set controller.directory=DIR."
        )
        chosen = controller_settings(loaded)
        measured = measured_speeds(loaded, duration_of("--over", over))
        problem, algorithm = new_group(chosen.policy, measured), chosen.algorithm
    packing = _packed(algorithm, problem)
    diff = packing.assignment - _without_idle(problem.current)
    moves = _moves(problem, diff)
    working = sum(1 for held in problem.current.values() if held)
    data = {
        "consumers_now": working,
        "consumers_then": len(packing.assignment),
        "consumers_at_least": consumers_at_least(problem),
        "create": [int(one) for one in diff.create],
        "empty": [int(one) for one in diff.remove],
        "moves": moves,
        "oversize": [str(one) for one in packing.oversize],
        "overloaded": [int(one) for one in packing.overloaded],
    }
    table = Table("partition", "from", "to", "load", box=None)
    for move in moves:
        speed = speed_text(move["load_bytes_per_s"])
        table.add_row(move["partition"], str(move["from"] or "-"), str(move["to"]), speed)
    say(
        f"{counted(working, 'consumer')} now, {data['consumers_then']} then, at least "
        f"{data['consumers_at_least']} needed; {counted(len(moves), 'partition')} would move."
    )
    if moves or output is not OutputFormat.TABLE:
        print_data(data, output, table)
    if packing.overloaded:
        raise NotFeasibleError(
            f"{counted(len(packing.overloaded), 'consumer')} would be over capacity.",
            remedy="Raise controller.consumers_max or packing.capacity.",
        )
    if moves:
        raise typer.Exit(CHANGES_PENDING)


def new_group(policy: TriggerPolicy, speeds: Mapping[TopicPartition, float]) -> PackingProblem:
    """The question of a group that has no consumer yet."""
    if not speeds:
        raise PenstockError(
            "No speed is known yet.",
            remedy="Measure longer (--over 10s); `monitor.include` says which topics count.",
        )
    memory = remember(SpeedMemory(), speeds, 0, 0, 0)
    group = load_of_assignment(policy, speeds, Assignment(), memory)
    return problem_for(policy, group, Reason.OVER_CAPACITY, None)


def _packed(name: str, problem: PackingProblem) -> Packing:
    try:
        return algorithm_named(name).pack(problem)
    except Exception as error:
        raise PenstockError(
            f"The packer {name} failed: {type(error).__name__}: {error}.",
            remedy="The group stays as it is meanwhile. Please report this with the output of "
            "`penstock status -o json`; another packing.algorithm may do.",
        ) from error


def _problem(asked: dict[str, Any]) -> PackingProblem:
    """The question as the controller would ask it, with backlogs and learned capacities."""
    if not asked["load_bytes_per_s"]:
        raise PenstockError(
            "The controller has no write speeds yet.", remedy="Check that the monitor runs."
        )
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


def _without_idle(current: Assignment) -> Assignment:
    """Idle consumers are spares: a repack creates or empties only those that read something."""
    return Assignment({consumer: held for consumer, held in current.items() if held})


def _moves(problem: PackingProblem, diff: ConsumerListDiff) -> list[dict[str, Any]]:
    """Every start of `future - current`, with the consumer that stops before it."""
    stopped_by = {p: consumer for consumer, held in diff.stop.items() for p in held}
    starts = {p: consumer for consumer, held in diff.start.items() for p in held}
    return [
        {
            "partition": str(partition),
            "from": stopped_by.get(partition),
            "to": starts[partition],
            "load_bytes_per_s": problem.load_bytes_per_s[partition],
        }
        for partition in sorted(starts)
    ]
