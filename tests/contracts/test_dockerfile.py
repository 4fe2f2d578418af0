"""Checks of the Dockerfile as text, because no container engine is available here.

Every copied file exists and is not ignored, every stage is known, packages and jars come only from
lock files, and no image runs as root.
"""

import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest

from kit.generated_files import ROOT
from kit.kubernetes.helm import CHART
from penstock.deployment.kubernetes.core.manifests import USER

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
IMAGES = ("penstock", "penstock-thin")


@dataclass(frozen=True, slots=True)
class Stage:
    """One build stage; `steps` are its instructions with their arguments."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def arguments(self, instruction: str) -> list[str]:
        return [text for word, text in self.steps if word == instruction]


def stages() -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    current: Stage | None = None
    for line in DOCKERFILE.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        word, _, text = line.partition(" ")
        if word == "FROM":
            base, _, name = text.partition(" AS ")
            current = found[name] = Stage(name, base)
        elif current is not None:
            current.steps.append((word, text))
        else:
            assert word == "ARG"
    return found


def lineage(name: str) -> list[Stage]:
    """A stage and its base stages, the nearest first."""
    known = stages()
    found = [known[name]]
    while found[-1].base in known:
        found.append(known[found[-1].base])
    return found


def last(name: str, instruction: str) -> str:
    """The value of an instruction in the finished image."""
    return next(
        stage.arguments(instruction)[-1] for stage in lineage(name) if stage.arguments(instruction)
    )


def environment(name: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for stage in reversed(lineage(name)):
        for text in stage.arguments("ENV"):
            pairs |= dict(pair.split("=", 1) for pair in text.split())
    return pairs


def test_it_has_both_images_and_the_whole_one_is_the_default() -> None:
    """A build without a target gives the full image."""
    assert set(IMAGES) <= set(stages())
    assert list(stages())[-1] == "penstock"
    for stage in stages().values():
        assert stage.base in {"${PYTHON_IMAGE}", *stages()}, stage.name


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_does_not_run_as_root(name: str) -> None:
    """The user is a number other than 0, the same as in the pods."""
    assert last(name, "USER") == f"{USER}:{USER}"
    assert stages()[name].steps[-1][0] == "USER"
    made = " ".join(text for stage in lineage(name) for text in stage.arguments("RUN"))
    assert f"useradd --uid {USER}" in made
    values = (CHART / "values.yaml").read_text(encoding="utf-8")
    assert f"runAsUser: {USER}" in values


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_starts_penstock(name: str) -> None:
    """The image starts penstock without a shell, and has a writable home."""
    assert last(name, "ENTRYPOINT") == '["penstock"]'
    assert environment(name)["PATH"].startswith("/opt/penstock/bin:")
    assert environment(name)["HOME"] == "/tmp"  # noqa: S108 -- a volume of the pod's own


def test_every_copied_file_is_there_and_not_ignored() -> None:
    """Copied files exist in the checkout or are made by an earlier stage."""
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    let_in = [line[1:] for line in ignored.splitlines() if line.startswith("!")]
    assert "*" in ignored.splitlines()
    copied = 0
    for stage in stages().values():
        for text in stage.arguments("COPY"):
            if text.startswith("--from="):
                source = text.split()[0].removeprefix("--from=")
                assert source in stages()
                continue
            for path in text.split()[:-1]:
                assert (ROOT / path).exists(), path
                assert any(fnmatch(path, one) for one in let_in), path
                copied += 1
    assert copied >= 6


def test_nothing_comes_from_an_address() -> None:
    """There is no ADD, no download and no pipe into a shell."""
    for stage in stages().values():
        assert not stage.arguments("ADD")
        for text in stage.arguments("RUN"):
            assert not re.search(r"://|\bcurl\b|\bwget\b|\| *(ba)?sh\b", text), text
            if "pip install" in text and "-r " in text:
                assert "--require-hashes" in text
            if re.search(r"pip (install|wheel)\b.* -r ", text):
                assert "--no-deps" in text, "pip would look for newer releases than the locked ones"
            if "pip wheel" in text:
                assert "--no-build-isolation" in text
                assert "--require-hashes" in text or "--no-deps" in text


def test_jars_are_baked_in_and_found_without_a_download() -> None:
    """The full image has the jars where the program looks; the thin one has no jars and no Java."""
    (fetched,) = (t for s in stages().values() for t in s.arguments("RUN") if "jars fetch" in t)
    assert f"PENSTOCK_CACHE={environment('penstock')['PENSTOCK_CACHE']} " in fetched
    assert "jars" in {
        text.split()[0].removeprefix("--from=") for text in stages()["penstock"].arguments("COPY")
    }
    thin = " ".join(text for stage in lineage("penstock-thin") for _, text in stage.steps)
    whole = " ".join(text for stage in lineage("penstock") for _, text in stage.steps)
    assert "openjdk" in whole
    assert "openjdk" not in thin
    assert "packages-thin" in thin


def test_each_image_has_its_own_lock_and_extra() -> None:
    """The full image installs Spark, the thin one its client, only from locked wheels."""
    for stage, lock, extra in (
        ("packages", "runtime", "all"),
        ("packages-thin", "thin", "connect"),
    ):
        (install,) = (text for text in stages()[stage].arguments("RUN") if " install " in text)
        assert f"'penstock[{extra}]'" in install
        assert "--no-index --find-links wheels --find-links own" in install
        assert "--no-deps" not in install
        named = {
            Path(path).stem
            for text in stages()[stage].arguments("COPY")
            for path in [text.split()[0]]
        }
        assert named == {lock}
