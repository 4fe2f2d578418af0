"""`penstock pause`, `resume` and `service send`: operators' requests and the answers to them."""

import difflib
import getpass
import json
import secrets
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic import ValidationError

from penstock.cli.console import OUTPUT_OPTION, OutputFormat, print_data, say
from penstock.cli.options import (
    BootstrapServer,
    Overrides,
    SettingsFile,
    effective_settings,
    named_values,
)
from penstock.cli.told_progress import ToldProgress
from penstock.errors import PenstockError, UsageError
from penstock.kafka_io.followed_topics import AT_THE_END, FollowedTopics
from penstock.kafka_io.producer import RecordProducer
from penstock.messages import (
    ChangeSettings,
    Direction,
    DropChanges,
    Pause,
    Resume,
    ServiceAnswer,
    ServiceOutcome,
    ServiceRequest,
    UpdateDeployments,
    decode,
    encode,
)
from penstock.messages.fields import SENTENCE_LENGTH_MAX
from penstock.messages.service import ChangeableOption
from penstock.model import TopicPartition
from penstock.model.json_text import read_json
from penstock.settings import Settings
from penstock.settings.tree import known_options
from penstock.settings.units import parse_duration

ANSWER_WAIT = "60s"
KINDS: dict[str, type[ServiceRequest]] = {
    "update-deployments": UpdateDeployments,
    "change-settings": ChangeSettings,
    "drop-changes": DropChanges,
    "pause": Pause,
    "resume": Resume,
}
_FINAL = {ServiceOutcome.DONE, ServiceOutcome.REFUSED, ServiceOutcome.FAILED}
app = typer.Typer(help="Send requests to the controller.", no_args_is_help=True)
Wait = Annotated[str, typer.Option(help="How long to wait for the outcome.")]


def pause(
    direction: Annotated[
        Direction, typer.Option(help="What the pause holds back.")
    ] = Direction.BOTH,
    until: Annotated[
        str | None,
        typer.Option(help="When it ends by itself: a duration (30m) or a time (2026-12-24T18:00)."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; kept in the history.")] = "",
    wait: Wait = ANSWER_WAIT,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Hold plans back: those that grow the group, those that shrink it, or both.

    Repairs go on: dead consumers are replaced and new partitions read.

    Example: `penstock pause --direction down --until 2h --reason 'sale'`
    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    fields: dict[str, Any] = {"direction": direction.value, "reason": reason}
    if until is not None:
        fields["until_unix_ms"] = _moment_ms(until)
    request = _made(Pause, "pause", json.dumps(fields))
    finish(ask(loaded, request, wait), output)


def resume(
    direction: Annotated[
        Direction, typer.Option(help="Which side of the pause ends; the other side stays.")
    ] = Direction.BOTH,
    wait: Wait = ANSWER_WAIT,
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """End a pause, or one side of it."""
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    request = Resume(request_id=_name("resume"), requested_by=requested_by(), direction=direction)
    finish(ask(loaded, request, wait), output)


@app.command()
def send(
    kind: Annotated[str, typer.Argument(help=f"One of {', '.join(KINDS)}.")],
    content: Annotated[
        list[str] | None,
        typer.Argument(
            help="JSON, or @FILE; settings to change also as NAME=VALUE. The fields are in "
            "docs/development/messages/."
        ),
    ] = None,
    wait: Wait = "5m",
    settings: SettingsFile = None,
    overrides: Overrides = None,
    bootstrap_server: BootstrapServer = None,
    output: OutputFormat = OUTPUT_OPTION,
) -> None:
    """Send a request to the controller and follow its answers until it is done.

    The controller refuses what the settings file could not have. A change that the group still has
    to follow (a lower maximum of consumers, a roll-out) is accepted first and done later.

    Examples:
    `penstock service send change-settings packing.capacity=3MB/s controller.consumers_max=9`

    `penstock service send update-deployments '{"transformations": {"orders": "mine:clean"}}'`

    """
    loaded = effective_settings(settings, overrides, bootstrap_server).settings
    if kind not in KINDS:
        raise UsageError(f"There is no request {kind!r}; use one of {', '.join(KINDS)}.")
    request = made_request(kind, _as_json(kind, content or ["{}"]))
    finish(ask(loaded, request, wait), output)


def made_request(kind: str, content: str) -> ServiceRequest:
    return _made(KINDS[kind], kind, content)


def _as_json(kind: str, content: list[str]) -> str:
    """One JSON text, or the settings of a change as NAME=VALUE."""
    if kind == "change-settings" and not content[0].startswith(("{", "@")):
        return json.dumps(named_values(content, kind))
    if len(content) > 1:
        raise UsageError(f"{kind} takes one JSON text, got {len(content)} arguments.")
    return content[0]


def requested_by() -> str:
    """Who sends a request, for the history and `penstock settings`."""
    name = f"{getpass.getuser()}@{socket.gethostname()}"
    return "".join(one for one in name if one.isprintable())[:SENTENCE_LENGTH_MAX]


def _made(kind: type[ServiceRequest], name: str, content: str) -> ServiceRequest:
    try:
        text = Path(content[1:]).read_text(encoding="utf-8") if content.startswith("@") else content
        fields = read_json(text)
        if not isinstance(fields, dict):
            raise UsageError("A request is a JSON object.")
        fields.setdefault("request_id", _name(name))
        fields.setdefault("requested_by", requested_by())
        if kind is ChangeSettings:
            fields = _with_options(fields)
        request = kind.model_validate_json(json.dumps(fields))
    except OSError as error:
        raise UsageError(f"Could not read {content[1:]}: {error.strerror}.") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise _unknown_field(kind, name, where) from error
        raise UsageError(f"{where}: {first['msg']}.") from error
    except ValueError as error:
        raise UsageError(f"Not valid JSON: {error}.") from error
    ends_ms = request.until_unix_ms if isinstance(request, Pause) else None
    if ends_ms is not None and ends_ms <= time.time() * 1000:
        raise UsageError("The pause would end before it begins.")
    return request


def _with_options(fields: dict[str, Any]) -> dict[str, Any]:
    """Settings by their own names may stand beside the other fields: `packing.capacity`."""
    options = {name: value for name, value in fields.items() if "." in name}
    named = fields.get("changes", {})
    if not isinstance(named, dict):
        raise UsageError("changes is a JSON object: settings and their new values.")
    changes = {**named, **options}
    for option in changes:
        if option not in get_args(ChangeableOption):
            near = difflib.get_close_matches(option, get_args(ChangeableOption), n=1)
            raise UsageError(
                f"{option} cannot be changed by a request."
                if tuple(option.split(".")) in known_options()
                else f"There is no setting {option}."
                + (f" Did you mean {near[0]}?" if near else ""),
                remedy=f"A request can change {', '.join(get_args(ChangeableOption))}. For all "
                "others change the settings file and roll it out: `penstock settings roll-out`.",
            )
    return {n: v for n, v in fields.items() if n not in options} | {"changes": changes}


def _unknown_field(kind: type[ServiceRequest], name: str, field: str) -> UsageError:
    known = sorted(kind.model_fields)
    near = difflib.get_close_matches(field, known, n=1)
    remedy = f"Did you mean {near[0]}?" if near else f"The fields are: {', '.join(known)}."
    return UsageError(f"{name}: unknown field {field}.", remedy=remedy)


def _name(kind: str) -> str:
    return f"{kind}-{secrets.token_hex(4)}"


def _moment_ms(text: str) -> int:
    try:
        return round((time.time() + parse_duration(text)) * 1000)
    except ValueError:
        pass  # not a duration: perhaps a time
    try:
        moment = datetime.fromisoformat(text)
        # The first and last days of the calendar have no time in every zone.
        at_s = (moment if moment.tzinfo else moment.astimezone(UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is neither a duration (30m) nor a time.") from None
    return round(at_s * 1000)


def ask(settings: Settings, request: ServiceRequest, wait: str) -> ServiceAnswer:
    """Send a request and follow its answers until the final one."""
    try:
        wait_s = parse_duration(wait)
    except ValueError as error:
        raise UsageError(f"--wait: {error}.") from error
    partition = TopicPartition(settings.topics.names.service, 0)
    answers = FollowedTopics(settings.kafka, {partition: AT_THE_END})
    try:
        _send(settings, partition.topic, request)
        with ToldProgress() as tell:
            last = _followed(answers, request, wait_s, tell)
    finally:
        answers.close()
    if last is not None and last.outcome in _FINAL:
        return last
    if last is None:
        raise PenstockError(
            f"The controller did not answer {request.request_id} within {wait}.",
            remedy="`penstock status` shows whether it runs. A request_id that was used before is "
            "not answered again.",
        )
    raise PenstockError(
        f"{request.request_id} is not done within {wait}: {step_text(last)}.",
        remedy="It goes on; `penstock history` shows when it is done.",
    )


def _followed(
    answers: FollowedTopics, request: ServiceRequest, wait_s: float, tell: ToldProgress
) -> ServiceAnswer | None:
    """The final answer, or the last one that came in time; each step is said."""
    last: ServiceAnswer | None = None
    tell.if_long("waiting for the controller to answer")
    deadline_s = time.monotonic() + wait_s
    while time.monotonic() < deadline_s:
        record = answers.read(0.5)
        if record is None:
            continue
        found = decode(record.value, record.headers, topic_role="service", mailbox=0)
        if not isinstance(found, ServiceAnswer) or found.request_id != request.request_id:
            continue
        last = found
        if found.outcome in _FINAL:
            break
        tell(step_text(found))
        tell.if_long("waiting for the group to follow")
    return last


def step_text(answer: ServiceAnswer) -> str:
    """`in progress: 2 of 3; 1 consumer of the old version is left`."""
    told = [f"{answer.done} of {answer.of}"] if answer.of else []
    told += [answer.detail] if answer.detail else []
    name = answer.outcome.replace("_", " ")
    return f"{name}: {'; '.join(told)}" if told else name


def _send(settings: Settings, topic: str, request: ServiceRequest) -> None:
    encoded = encode(request, group=settings.lake.group)
    errors: list[Exception] = []
    producer = RecordProducer(settings.kafka)
    producer.send(
        topic,
        0,
        encoded.value,
        headers=encoded.headers,
        on_delivery=lambda error, _: errors.append(error) if error else None,
    )
    if producer.flush(settings.kafka.answer_timeout) or errors:
        raise errors[0] if errors else PenstockError("The request could not be sent in time.")


def finish(answer: ServiceAnswer, output: OutputFormat) -> None:
    data: dict[str, Any] = answer.model_dump(mode="json", exclude_none=True)
    if output is OutputFormat.TABLE:
        say(f"{answer.outcome}: {answer.detail}")
    else:
        print_data(data, output)
    if answer.outcome is not ServiceOutcome.DONE:
        raise typer.Exit(1)
