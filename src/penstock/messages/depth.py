"""Checks how deep a JSON text nests, before it is parsed.

The fast check uses `bytes.replace`: drop everything but brackets and quotes, make all brackets
alike, drop empty strings, then remove one layer of empty brackets per round. A text of depth d is
empty after d rounds. Texts with brackets or backslashes inside strings fail this check and are
scanned byte by byte.
"""

_KEPT = b'[]{}"\\'
_DROPPED = bytes(byte for byte in range(256) if byte not in _KEPT)
# One level may hold both kinds of brackets. Removed one after the other, `{[]}` would be one level.
_ALIKE = bytes.maketrans(b"{}", b"[]")


def is_deeper_than(limit: int, text: bytes) -> bool:
    """Whether brackets outside strings nest deeper than `limit` levels."""
    left = text.translate(_ALIKE, _DROPPED)
    if b"\\" not in left:
        left = left.replace(b'""', b"")
        for _ in range(limit):
            left = left.replace(b"[]", b"")
            if not left:
                return False
    return _depth_read_carefully(text) > limit


def _depth_read_carefully(text: bytes) -> int:
    """Scan the text once. The parser refuses unbalanced text later."""
    depth = deepest = 0
    in_string = escaped = False
    for byte in text:
        if escaped:
            escaped = False
        elif byte == 0x5C:
            escaped = in_string
        elif byte == 0x22:
            in_string = not in_string
        elif not in_string and byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif not in_string and byte in b"]}":
            depth -= 1
    return deepest
