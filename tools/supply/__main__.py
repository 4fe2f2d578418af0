"""`make supply`: writes the bill of materials, checks licences, and asks for known vulnerabilities.

python -m supply bill FILE          the bill of materials
python -m supply licences           1 when something that is shipped has another licence, or none
python -m supply audited FILE       1 when a report of pip-audit has a problem, or a gap
python -m supply base-image NAME    1 unless the base image is named by its digest
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from supply.audit import problems_of
from supply.bill import bill_of_materials, inner_components, refused
from supply.licences import UnknownLicenceError

_BY_DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")


def is_by_digest(image: str) -> bool:
    return _BY_DIGEST.fullmatch(image) is not None


def _counted(bill: dict[str, Any]) -> str:
    return f"{len(bill['components'])} components and {len(inner_components(bill))} jars inside"


def main(arguments: list[str]) -> int:
    try:
        return _run(arguments)
    except UnknownLicenceError as unknown:
        print(f"unknown licence: {unknown}")
        return 1


def _run(arguments: list[str]) -> int:
    match arguments:
        case ["bill", file]:
            bill = bill_of_materials()
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
            print(f"{file}: {_counted(bill)}")
            return 0
        case ["licences"]:
            bill = bill_of_materials()
            wrong = refused(bill)
            for line in wrong:
                print(line)
            print(f"the licences of {_counted(bill)}: {len(wrong)} not allowed")
            return 1 if wrong else 0
        case ["audited", file]:
            report = json.loads(Path(file).read_text(encoding="utf-8"))
            problems = problems_of(report)
            for line in problems:
                print(line)
            print(f"{file}: {len(report['dependencies'])} packages, {len(problems)} problems")
            return 1 if problems else 0
        case ["base-image", image]:
            if is_by_digest(image):
                return 0
            print(f"{image or 'no image'}: name the base image by digest, NAME@sha256:...")
            return 1
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
