"""Which code a request may bring into the group: what the operator's settings name.

Whoever may write to the service topic can ask for a roll-out, and an image or a transformation is
code that consumers then run. The settings file belongs to the operator: what it names itself is
allowed, and so is what its patterns list. Everything else is refused.
"""

from penstock.messages import UpdateDeployments
from penstock.settings.sections import Settings
from penstock.settings.sections.base import is_among


def not_allowed(settings: Settings, request: UpdateDeployments) -> str:
    """What of the request the settings do not allow; empty when they allow all of it."""
    controller = settings.controller
    image = request.image
    if (
        image is not None
        and image != settings.kubernetes.image
        and not is_among(image, controller.allowed_images)
    ):
        return (
            f"the image {image} is not allowed: neither kubernetes.image nor "
            "controller.allowed_images names it"
        )
    named = {one.transformation for one in settings.lake.tables.values()}
    for topic, function in sorted(request.transformations.items()):
        if function not in named and not is_among(function, controller.allowed_transformations):
            return (
                f"the transformation {function} of {topic} is not allowed: neither lake.tables nor "
                "controller.allowed_transformations names it"
            )
    return ""


def code_named(request: UpdateDeployments) -> str:
    """The code that a request brings, for the history; empty when it brings none."""
    named = [] if request.image is None else [f"image {request.image}"]
    named += [f"{topic} by {function}" for topic, function in request.transformations.items()]
    return ", ".join(named)
