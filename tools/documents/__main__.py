"""Write every generated file again: `make docs`."""

import sys

import pytest

from documents import ROOT
from documents.generated import GENERATED
from documents.manifests import MANIFESTS, manifest_path, manifest_text
from kit.kubernetes.helm import helm_program


def main() -> int:
    for one in GENERATED:
        _write(one.path, one.text())
    try:
        helm = helm_program()
    except pytest.skip.Exception as no_helm:  # the tests' way to say that this machine has none
        print(f"deploy/manifests is left as it is: {no_helm.msg}", file=sys.stderr)
        return 1
    for name in MANIFESTS:
        _write(manifest_path(name), manifest_text(helm, name))
    return 0


def _write(path: str, text: str) -> None:
    file = ROOT / path
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    if before != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    raise SystemExit(main())
