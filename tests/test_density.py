"""How the density of code is counted."""

from bench.density import measure, total

SOURCE = '''"""A docstring,
of two lines."""

# A comment.
ROWS = [[cell for cell in row] for row in ()]  # another


def double(numbers):
    """Double them."""
    return {
        number: 2 * number
        for number in numbers
    }
'''


def test_comprehensions_comments_and_lines_of_code_are_counted() -> None:
    counts = measure(SOURCE)
    assert (counts.code, counts.comprehensions, counts.crowded, counts.comments) == (6, 3, 1, 2)
    assert counts.functions == [5]  # its docstring is not counted


def test_the_counts_of_files_are_added() -> None:
    both = total([measure(SOURCE), measure("x = [y for y in ()]\n")])
    assert (both.files, both.code, both.comprehensions, both.functions) == (2, 7, 4, [5])
