"""What a roll-out changed holds until the settings are edited; then the settings count."""

from penstock.controller.process.template_changes import changes_of, updated, without_overtaken
from penstock.deployment import DeploymentTemplate
from penstock.messages import UpdateDeployments
from penstock.settings import Settings, changed_settings

REQUEST = UpdateDeployments(
    request_id="u",
    transformations={"orders": "mine:newer"},
    spark_settings={"spark.sql.shuffle.partitions": "9"},
    environment={"APP_REGION": "north"},
)


def chosen(transformation: str, partitions: str = "4") -> Settings:
    return changed_settings(
        Settings(),
        {
            "lake.tables": {"orders": {"transformation": transformation}},
            "spark.options": {"spark.sql.shuffle.partitions": partitions},
        },
    )


def test_it_holds_while_the_settings_stay() -> None:
    """A restart with the same settings, also with others of no concern, changes nothing."""
    template = updated(DeploymentTemplate(), 1, REQUEST, chosen("mine:first"))
    same, told = without_overtaken(template, chosen("mine:first"))
    assert (same, told) == (template, [])
    assert changes_of(template) == {
        "lake.tables.orders.transformation": "mine:newer",
        "spark.options.spark.sql.shuffle.partitions": "9",
    }


def test_an_edited_transformation_is_not_ignored() -> None:
    """The case of the user whose edited `transformation:` had no effect; and it is said."""
    template = updated(DeploymentTemplate(), 1, REQUEST, chosen("mine:first"))
    after, (told,) = without_overtaken(template, chosen("mine:edited"))
    assert after.transformations == {}
    assert after.spark_settings == {"spark.sql.shuffle.partitions": "9"}
    assert after.environment == {"APP_REGION": "north"}
    assert told == (
        "lake.tables.orders.transformation: the settings were changed from mine:first to "
        "mine:edited since it was rolled out, so the settings count"
    )
    after, _ = without_overtaken(after, chosen("mine:edited", partitions="5"))
    assert changes_of(after) == after.instead_of == {}


def test_a_topic_that_the_settings_did_not_name() -> None:
    """It counts as none, before and after."""
    template = updated(DeploymentTemplate(), 1, REQUEST, Settings())
    _, told = without_overtaken(template, Settings())
    assert told == []
    _, told = without_overtaken(template, chosen("mine:edited"))
    assert "from none to mine:edited" in told[0]


def test_all_of_it_is_taken_back() -> None:
    """Consumers are deployed as the settings have it, with the same copy of them."""
    before = DeploymentTemplate(settings_file="/copy.yaml", settings_digest="d")
    template = updated(before, 1, REQUEST, chosen("mine:first"))
    dropping = UpdateDeployments(request_id="d", drop_changes=True)
    after = updated(template, 2, dropping, chosen("mine:first"))
    assert after == DeploymentTemplate(version=2, settings_file="/copy.yaml", settings_digest="d")


def test_an_image_of_a_request_holds_until_the_settings_name_another() -> None:
    """`helm upgrade` with a new image is not held up by what somebody asked for before it."""

    def with_image(image: str) -> Settings:
        return changed_settings(Settings(), {"kubernetes.image": image})

    asked = UpdateDeployments(request_id="u", image="penstock:fix")
    template = updated(DeploymentTemplate(), 1, asked, with_image("penstock:1"))
    assert changes_of(template) == {"kubernetes.image": "penstock:fix"}
    same, told = without_overtaken(template, with_image("penstock:1"))
    assert (same.image, told) == ("penstock:fix", [])
    after, (told_once,) = without_overtaken(template, with_image("penstock:2"))
    assert after.image is None
    assert "from penstock:1 to penstock:2" in told_once
