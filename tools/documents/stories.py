"""Write the traces of the stories again: `make stories`. Read the diff before committing it.

A story in tests/stories is inputs and what the controller does; the second part is what is written.
"""

from documents import ROOT
from kit.controller.story import replayed


def main() -> None:
    for path in sorted((ROOT / "tests" / "stories").glob("*.story")):
        before = path.read_text(encoding="utf-8")
        after = replayed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
