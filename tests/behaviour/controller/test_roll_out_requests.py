"""A request for new deployments is refused where it would change nothing or stop every consumer."""

from typing import Any

import pytest
from pydantic import ValidationError

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, Storyteller, after
from penstock.controller.core.inputs import NewSettings, Requested
from penstock.errors import SettingsError
from penstock.messages import UpdateDeployments
from penstock.settings import Settings, changed_settings

MEMORY = {"spark.driver.memory": "2g"}
SHUFFLE = {"spark.sql.shuffle.partitions": "4"}
LOCAL, KUBERNETES = "deployment=local", "deployment=kubernetes"
CONNECT, OWN = "master=sc://spark:15002", "master=local[2]"


@pytest.mark.parametrize(
    ("settings", "asked", "outcome"),
    [
        (LOCAL, {"image": "penstock:2"}, "refused"),
        (LOCAL, {"resources": {"memory_megabytes": 512}}, "refused"),
        (LOCAL, {"environment": {"APP_X": "1"}}, "accepted"),
        (LOCAL, {}, "accepted"),
        (KUBERNETES, {"resources": {"memory_megabytes": 512}}, "accepted"),
        (CONNECT, {"spark_settings": MEMORY}, "refused"),
        (CONNECT, {"spark_settings": SHUFFLE | MEMORY}, "refused"),
        (CONNECT, {"spark_settings": SHUFFLE}, "accepted"),
        (OWN, {"spark_settings": MEMORY}, "accepted"),
    ],
)
def test_what_has_no_effect_is_refused(settings: str, asked: dict[str, Any], outcome: str) -> None:
    """Local processes have no image; consumers of a Connect server cannot set its memory."""
    teller = after(f"settings {settings}", *TWO_CONSUMERS)
    request = UpdateDeployments.model_validate({"request_id": "u", **asked})
    assert f"  > answer u: {outcome}" in teller.give(Requested(teller.now_ms, request))
    assert teller.state is not None
    assert (teller.state.roll_out is not None) is (outcome == "accepted")


def test_a_transformation_is_for_a_topic_not_for_a_pattern() -> None:
    """The settings name topics one by one; a pattern would be taken for a topic of that name."""
    with pytest.raises(ValidationError, match="transformations"):
        UpdateDeployments(request_id="u", transformations={"orders*": "mine:clean"})


# Code that the settings do not name

TABLES = {"orders": {"transformation": "shop.orders:decode"}}


def asked(changes: dict[str, Any], fields: dict[str, Any]) -> tuple[Storyteller, str]:
    """What becomes of a request for other code with these settings, as the history tells it."""
    teller = Storyteller()
    teller.settings = settings_with(changes)
    for line in TWO_CONSUMERS:
        teller.tell(line)
    request = UpdateDeployments.model_validate(
        {"request_id": "u", "requested_by": "ann@desk", **fields}
    )
    teller.give(Requested(teller.now_ms, request))
    assert teller.state is not None
    return teller, teller.state.history[-1].explanation


def settings_with(changes: dict[str, Any]) -> Settings:
    return changed_settings(
        CATALOGUE,
        {
            "controller.deployment": "kubernetes",
            "kubernetes.image": "registry.example/penstock:1",
            "lake.tables": TABLES,
            **changes,
        },
    )


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, {"image": "registry.example/penstock:1"}),
        (
            {"controller.allowed_images": [r"other/.*", r"registry\.example/penstock:[0-9.]+"]},
            {"image": "registry.example/penstock:2"},
        ),
        ({}, {"transformations": {"payments": "shop.orders:decode"}}),
        (
            {"controller.allowed_transformations": [r"shop\..*:decode"]},
            {"transformations": {"payments": "shop.payments:decode"}},
        ),
        ({}, {"environment": {"APP_X": "1"}}),
    ],
    ids=["own image", "listed image", "own function", "listed function", "no code"],
)
def test_code_that_the_settings_name_is_rolled_out(
    changes: dict[str, Any], fields: dict[str, Any]
) -> None:
    """What the file itself names is allowed, and so is what its patterns list."""
    teller, told = asked(changes, fields)
    assert told.startswith("request u of ann@desk: accepted, version 1")
    assert teller.state is not None
    assert teller.state.roll_out is not None


@pytest.mark.parametrize(
    ("changes", "fields", "why"),
    [
        (
            {},
            {"image": "evil/miner:1"},
            (
                "the image evil/miner:1 is not allowed: neither kubernetes.image nor "
                "controller.allowed_images names it"
            ),
        ),
        (
            {"controller.allowed_images": ["penstock:2"]},
            {"image": "evil/penstock:2"},
            (
                "the image evil/penstock:2 is not allowed: neither kubernetes.image nor "
                "controller.allowed_images names it"
            ),
        ),
        (
            {"controller.allowed_transformations": [r"shop\..*:decode"]},
            {"transformations": {"orders": "shop.orders:decode", "payments": "os:system"}},
            (
                "the transformation os:system of payments is not allowed: neither lake.tables nor "
                "controller.allowed_transformations names it"
            ),
        ),
    ],
    ids=["image", "part of an image", "function"],
)
def test_other_code_is_refused_and_told(
    changes: dict[str, Any], fields: dict[str, Any], why: str
) -> None:
    """Whoever may write to the service topic cannot run code of their own; the history says who."""
    teller, told = asked(changes, fields)
    assert told == f"request u of ann@desk: refused, {why}"
    assert teller.state is not None
    assert teller.state.roll_out is None


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "penstock:2-evil"},
        {"image": "evil/penstock:2"},
        {"image": "penstock:2@sha256:1"},
        {"image": "penStock:2"},
        {"transformations": {"orders": "shop.orders:decode_all"}},
        {"transformations": {"orders": "evil.shop.orders:decode"}},
        {"transformations": {"orders": "Shop.orders:decode"}},
        {"transformations": {"orders": "shop.orders.decode:decode"}},
    ],
)
def test_a_pattern_is_for_a_whole_name_in_its_own_case(fields: dict[str, Any]) -> None:
    """What only begins or ends as listed is other code."""
    allowed = {
        "controller.allowed_images": ["penstock:2"],
        "controller.allowed_transformations": [r"shop\.orders:decode"],
    }
    _, told = asked({**allowed, "lake.tables": {}}, fields)
    assert " is not allowed: neither " in told


def test_what_is_rolled_out_is_in_the_history() -> None:
    """With the image, the functions, and who asked."""
    _, told = asked(
        {},
        {
            "image": "registry.example/penstock:1",
            "transformations": {"payments": "shop.orders:decode"},
        },
    )
    assert told == (
        "request u of ann@desk: accepted, version 1 (image registry.example/penstock:1, payments "
        "by shop.orders:decode) is tried first, then one by one"
    )


def test_a_new_settings_file_allows_what_it_names() -> None:
    """`penstock settings roll-out`: the file that is rolled out counts, not the one before."""
    teller = after("settings deployment=kubernetes", *TWO_CONSUMERS)
    assert teller.state is not None
    new = changed_settings(teller.state.chosen, {"lake.tables": TABLES})
    request = UpdateDeployments(
        request_id="u", from_settings=True, transformations={"orders": "shop.orders:decode"}
    )
    alone = request.model_copy(update={"from_settings": False, "request_id": "v"})
    assert "  > answer v: refused" in teller.give(Requested(teller.now_ms, alone))
    given = Requested(teller.now_ms, request, NewSettings(new))
    assert "  > answer u: accepted" in teller.give(given)


@pytest.mark.parametrize("option", ["allowed_images", "allowed_transformations"])
def test_a_pattern_that_is_none_is_an_error_of_the_settings(option: str) -> None:
    """It is found at the start, not when somebody asks."""
    with pytest.raises(SettingsError, match="not a regular expression"):
        changed_settings(CATALOGUE, {f"controller.{option}": ["(("]})
