"""Read a PDF, as a program of its own: a file may be made to unpack without end, and only a process can be stopped.

Takes the file as its input, and its bounds as arguments: bytes of memory, and characters of text. Prints the title and
the text of each page as JSON, or, with exit code 3, why there are none.
"""

import json
import sys
from collections.abc import Iterator

from pypdf import PdfReader
from pypdf.errors import DependencyError, PyPdfError


def read(characters: int) -> str:
    """Read the file.

    Args:
        characters: Most characters of all pages together.
    """
    reader = PdfReader(sys.stdin.buffer)
    title = str((reader.metadata and reader.metadata.title) or "")
    return json.dumps([title, list(_pages(reader, characters))])


def _pages(reader: PdfReader, characters: int) -> Iterator[str]:
    for page in reader.pages:
        text = page.extract_text()
        characters -= len(text)
        if characters < 0:
            # Told like memory that has run out: a small file may unpack to gigabytes of text.
            raise MemoryError
        yield text


def main(memory: int, characters: int) -> int:
    """Print what the file holds, and return the exit code."""
    if sys.platform == "linux":  # elsewhere time alone is bounded: Windows has no such limit, macOS does not keep it
        from resource import RLIMIT_AS, setrlimit

        setrlimit(RLIMIT_AS, (memory, memory))
    try:
        sys.stdout.write(read(characters))
    except MemoryError:
        sys.stdout.write("the PDF unpacks to more than a document needs")
        return 3
    # Broken files also let errors of pypdf's own parsing through, as its documentation says.
    except (PyPdfError, DependencyError, ValueError, TypeError, AttributeError, LookupError, RuntimeError) as error:
        sys.stdout.write(f"the PDF is broken or encrypted ({type(error).__name__})")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
