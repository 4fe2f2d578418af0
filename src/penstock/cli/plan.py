"""`penstock plan`: what a repack would change now, as `future - current`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.group_status import NoStatusError, read_status, silence_text
from penstock.cli.options import BootstrapServer, Overrides, SettingsFile, effective_settings
from penstock.cli.speeds import duration_of, measured_speeds
from penstock.controller.core.capacity_text import capacity_text
from penstock.controller.core.dry_run import (
    dry_run,
    priced_of_question,
    problem_of_question,
    weights_of_question,
)
from penstock.controller.core.objective_cost import (
    SPARES,
    UTILISATION,
    PricedObjective,
    costs_text,
)
from penstock.controller.core.settings import controller_settings
from penstock.errors import NotFeasibleError, PenstockError
from penstock.model import Assignment, TopicPartition
from penstock.model.sentences import age_text, counted, speed_text
from penstock.packing import PackingProblem
from penstock.packing.objective import Measured
from penstock.packing.speed_memory import SpeedMemory, remember
from penstock.packing.trigger import Reason, TriggerPolicy, load_of_assignment, problem_for
from penstock.settings import Settings
from penstock.settings.objective import is_set, objective_of

CHANGES_PENDING = 7
CANNOT_TELL = 1


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
    cannot carry the load. 1 when the controller has stopped reporting: the plan by what was known
    last is shown, with how old that is, and the group may have changed since.

    Where no controller has run, it plans a new group from speeds that it measures for `--over`.
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    is_old = False
    try:
        found = read_status(loaded)
    except NoStatusError as error:
        say(f"{error.message.rstrip('.')}: this is the plan of a new group.")
        chosen = controller_settings(loaded)
        measured = measured_speeds(loaded, duration_of("--over", over))
        problem, algorithm = new_group(chosen.policy, measured), chosen.algorithm
        priced: PricedObjective | None = priced_of_settings(loaded)
        weights: dict[str, float] = {}
        carried = speed_text(chosen.policy.capacity_bytes_per_s)
        how = "is assumed to carry" if chosen.capacity_is_measured else "carries"
        say(f"One consumer {how} {carried} (packing.capacity).")
    else:
        is_old = _is_old(found)
        problem = problem_of_question(found["question"])
        priced = priced_of_question(found["question"])
        algorithm = found["settings"]["algorithm"]
        weights = weights_of_question(found["question"])
        if capacity := capacity_text(found):
            say(f"{capacity[0].upper()}{capacity[1:]}.")
    found_plan = dry_run(algorithm, problem, weights, priced)
    data, moves, working = found_plan.data(), found_plan.moves(), found_plan.consumers_now
    table = Table("partition", "from", "to", "load", box=None)
    for move in moves:
        speed = speed_text(move["load_bytes_per_s"])
        table.add_row(move["partition"], str(move["from"] or "-"), str(move["to"]), speed)
    say(
        f"{counted(working, 'consumer')} now, {data['consumers_then']} then, at least "
        f"{data['consumers_at_least']} needed; {counted(len(moves), 'partition')} would move."
    )
    if priced is not None:
        say(costs_text(found_plan.costs, priced.objective.share))
    if moves or output is not OutputFormat.TABLE:
        print_data(data, output, table)
    _end(len(found_plan.packing.overloaded), has_moves=bool(moves), is_old=is_old)


def _is_old(status: dict[str, Any]) -> bool:
    """Say so, when no controller tells what is so now."""
    if status["is_stale"]:
        age = age_text(status["age_s"])
        say(
            f"{silence_text(status)} This is the plan by what was known {age} ago; the group "
            "may have changed since."
        )
    return bool(status["is_stale"])


def _end(overloaded: int, *, has_moves: bool, is_old: bool) -> None:
    """With the exit code that a script asks for."""
    too_much = f"{counted(overloaded, 'consumer')} would be over capacity."
    if is_old:
        if overloaded:
            say(too_much)
        raise typer.Exit(CANNOT_TELL)
    if overloaded:
        raise NotFeasibleError(
            too_much,
            remedy="Raise controller.consumers_max, or packing.capacity if it is set too low.",
        )
    if has_moves:
        raise typer.Exit(CHANGES_PENDING)


def priced_of_settings(settings: Settings) -> PricedObjective:
    """Of a group that has measured nothing yet."""
    return PricedObjective(
        objective_of(settings),
        Measured(),
        settings.packing.target_utilisation,
        settings.controller.spare_consumers,
        frozenset(option for option in (UTILISATION, SPARES) if is_set(settings, option)),
    )


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
