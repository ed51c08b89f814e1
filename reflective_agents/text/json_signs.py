"""How much structure a JSON text has, counted without reading it: readers take long for each of its parts."""

SIGNS = (b",", b"[", b"]", b"{", b"}")


def signs_outside_texts(body: bytes, most: int) -> int:
    """Count the commas and brackets of JSON that stand outside of its texts, and its quotation marks.

    Args:
        body: The JSON.
        most: How many are of interest: if there are more quotation marks, only these are counted.
    """
    # Escaped backslashes first: in \\" the quotation mark ends a text.
    texts = body.replace(rb"\\", b"").replace(rb"\"", b"")
    quotes = texts.count(b'"')
    if quotes > most:  # to split them would take longest
        return quotes
    between = b"".join(texts.split(b'"')[::2])
    return sum(map(between.count, SIGNS)) + quotes
