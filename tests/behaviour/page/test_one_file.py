"""The page as one file that needs no server."""

import base64
import hashlib
import json
import re
import zlib

import pytest

from penstock.page.core.one_file import (
    PACKED_FROM_BYTES,
    NotOneFileError,
    embedded,
    joined,
    one_file,
)

PAGE = """<!doctype html>
<html><head>
<link rel="icon" href="favicon.svg">
<link rel="stylesheet" href="style.css">
<script type="module" src="main.js"></script>
</head><body><main></main></body></html>
"""
FILES = {
    "index.html": PAGE,
    "style.css": "main { color: red }",
    "main.js": 'import { double as twice, ONE } from "./parts/sums.js";\n'
    'import * as sums from "./parts/sums.js";\nimport "./quiet.js";\nshow(twice(ONE), sums.ONE);\n',
    "parts/sums.js": 'import { one } from "./one.js";\nexport const ONE = one();\n'
    "export function double(x) { return 2 * x; }\nexport async function later() {}\n"
    "class Inner {}\nexport { Inner as Outer };\n",
    "parts/one.js": "export function one() { return 1; }\n",
    "quiet.js": "const hidden = 1;\n",
}


def test_everything_is_inside_and_nothing_else_may_run() -> None:
    """Style and script are there with their sums; no element names another file."""
    page = one_file(FILES, {"title": "a run"})
    assert "src=" not in page
    assert "href=" not in page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for kind in ("style", "script"):
        text = re.search(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        assert text is not None
        digest = base64.b64encode(hashlib.sha256(text[1].encode()).digest()).decode()
        assert f"{kind}-src &#x27;sha256-{digest}&#x27;" in policy[1]
    assert "default-src &#x27;none&#x27;" in policy[1]
    assert page.index("Content-Security-Policy") < page.index("<style>")


def test_modules_come_after_those_they_need() -> None:
    """Each once, with what it takes and what it gives."""
    script = joined(FILES, ["main.js"])
    order = re.findall(r'^modules\["(.*?)"\]', script, re.MULTILINE)
    assert order == ["parts/one.js", "parts/sums.js", "quiet.js", "main.js"]
    assert 'const {double: twice, ONE} = modules["parts/sums.js"];' in script
    assert 'const sums = modules["parts/sums.js"];' in script
    assert "return {ONE, double, later, Outer: Inner};" in script
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"main.js": 'import { a } from "./none.js";\n'}, "none.js is not among"),
        ({"main.js": 'import { a } from "./main.js";\n'}, "main.js -> main.js"),
        ({"main.js": "export default 1;\n"}, "not understood: export default 1;"),
        ({"main.js": "x = '</script>';\n"}, "end of an element"),
        ({"index.html": "<p>"}, "no <head>"),
    ],
)
def test_what_cannot_be_put_into_one_file(files: dict[str, str], message: str) -> None:
    """Is refused with the file's name, when the file is made and not when it is opened."""
    with pytest.raises(NotOneFileError, match=re.escape(message)):
        one_file({**FILES, **files}, {})


def test_a_large_run_is_compressed_and_comes_back_whole() -> None:
    """To a tenth and less: frames repeat most of what the one before had."""
    run = {"frames": [{"consumer": number % 7, "state": "owned"} for number in range(40_000)]}
    page = one_file(FILES, run)
    found = re.search(r'<script type="application/zlib" id="penstock-run">(.*?)</script>', page)
    assert found is not None
    assert json.loads(zlib.decompress(base64.b64decode(found[1]))) == run
    assert len(page) < PACKED_FROM_BYTES / 10


def test_names_made_of_markup_cannot_end_the_data() -> None:
    """The run comes back as it was, and the file has no element that is not the page's own."""
    run = {"name": "</script><img src=x onerror=alert(1)>&\u2028<!--"}
    assert json.loads(embedded(run)) == run
    page = one_file(FILES, run)
    assert "<img" not in page
    assert page.count("</script>") == 2
