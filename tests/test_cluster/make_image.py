"""Writes a container image from folders, without Docker: one layer a folder.

    make_image.py NAME ARCHIVE FOLDER... -- [ARGUMENT...]

The archive has the OCI image layout. The image runs ARGUMENT... and needs only the standard library
of Python 3.9 or later to be made.
"""

import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MEDIA_TYPE = "application/vnd.oci.image"
ENVIRONMENT = ["PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONUNBUFFERED=1"]


class ImageArchive:
    """The files of an image, each under the digest of its content."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def add(self, content: bytes, kind: str) -> dict[str, Any]:
        """Keeps the content and returns its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = content
        return {
            "mediaType": f"{MEDIA_TYPE}.{kind}",
            "digest": f"sha256:{digest}",
            "size": len(content),
        }

    def write(self, archive: Path) -> None:
        with tarfile.open(archive, "w") as tar:
            for path, content in self.files.items():
                member = tarfile.TarInfo(path)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def make_image(
    name: str, archive: Path, folders: Sequence[Path], entry_point: Sequence[str]
) -> None:
    image = ImageArchive()
    layers = [image.add(_packed(folder), "layer.v1.tar") for folder in folders]
    configuration = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": list(entry_point), "Env": ENVIRONMENT},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA_TYPE}.manifest.v1+json",
        "config": image.add(json.dumps(configuration).encode(), "config.v1+json"),
        "layers": layers,
    }
    described = image.add(json.dumps(manifest).encode(), "manifest.v1+json")
    described["annotations"] = {"io.containerd.image.name": name}
    index = {"schemaVersion": 2, "manifests": [described]}
    image.files["index.json"] = json.dumps(index).encode()
    image.write(archive)


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(folder, ".", filter=_without_origin)
    return packed.getvalue()


def _without_origin(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same bytes on every machine and at any time."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def main(arguments: Sequence[str]) -> None:
    split = arguments.index("--")
    name, archive, *folders = arguments[:split]
    make_image(name, Path(archive), [Path(folder) for folder in folders], arguments[split + 1 :])


if __name__ == "__main__":
    main(sys.argv[1:])
