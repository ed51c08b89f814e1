"""Reading an answer while it comes: what is shown of it is how the checked answer begins."""

import re
from collections.abc import Collection, Sequence

from reflective_agents.nodes.answer_stream import Reader, Whole
from reflective_agents.nodes.evidence.marks import replace_citations
from reflective_agents.nodes.evidence.reference_list import LONGEST_HEADING, is_entry, is_heading, may_head_entries
from reflective_agents.text.brackets import Mark, read_line, restart

LONG_LINE = 500
"""Characters of a line from which on its beginning is dropped."""
GROWTH = 1.1
"""How many times as long a long line whose beginning cannot be dropped has to be before it is read again."""
_NUMBERED = re.compile(r"\W{0,8}\d{1,3}(?:\W|$)")


class CitationReader:
    """Leaves out the citations of what was not shown, and the list of references, which code makes.

    It holds back no more than what may be a citation or the beginning of the list.

    Args:
        known: The numbers of the sources that were shown.
        inner: Finds the answer in the reply.
    """

    def __init__(self, known: Collection[int], inner: Reader | None = None) -> None:
        self._known = {str(number) for number in known}
        self._inner = inner or Whole()
        self._line, self._shown, self._closer, self._read = "", 0, "", 0
        self._headings, self._is_first, self._ended = "", True, False

    def feed(self, text: str) -> str:
        """Take the next piece, and return what is certain to stay."""
        *ends, rest = self._inner.feed(text).split("\n")
        answer = ""
        for end in ends:
            self._line += end
            answer += self._end_line()
        self._line += rest
        return answer + self._begin_line()

    def _end_line(self) -> str:
        """Return the rest of a line that is whole."""
        line, shown = self._line, self._shown
        # The first line is never a heading or an entry: an answer cannot begin with its list.
        if not shown and not self._is_first:
            self._ended = self._ended or is_heading(line) or is_entry(line)
        if self._ended:
            return ""
        read = read_line(line, self._closer)
        text = self._checked(len(line)) + "\n"
        self._line, self._shown, self._closer, self._read = "", 0, read.closer, 0
        if self._is_first and not line.strip():
            return text
        goes_on = bool(self._headings) and not line.strip()
        if not shown and not self._is_first and (may_head_entries(line) or goes_on):
            self._headings += text
            return ""
        headings, self._headings, self._is_first = self._headings, "", False
        return headings + text

    def _begin_line(self) -> str:
        """Return what is certain of a line that is still coming."""
        if self._ended or (not self._shown and self._may_be_listed()):
            return ""
        end = len(self._line)
        if end > LONG_LINE and end < GROWTH * self._read:
            return ""
        self._read = end
        if any(bracket in self._line[self._shown :] for bracket in "[【"):
            end = read_line(self._line, self._closer).settled
        # Blanks wait: they go with a citation behind them that is taken out.
        end = len(self._line[:end].rstrip())
        if end <= self._shown:
            return ""
        text = self._headings + self._checked(end)
        self._headings, self._shown = "", end
        self._forget()
        return text

    def _may_be_listed(self) -> bool:
        """Tell whether the line may become a heading or an entry of the list."""
        if self._is_first:
            return False
        return len(self._line) <= LONGEST_HEADING or _NUMBERED.match(self._line) is not None

    def _forget(self) -> None:
        """Drop the beginning of a long line, which tells nothing of what comes: each piece would read it again."""
        if self._shown > LONG_LINE and (begin := restart(self._line, self._shown, self._closer)):
            self._line, self._shown, self._closer = self._line[begin:], self._shown - begin, ""

    def _checked(self, end: int) -> str:
        """Return what was not shown yet up to a place in the line, without citations of what was not shown."""
        begin = self._shown
        among: list[Mark] = []
        for mark in read_line(self._line, self._closer).marks:
            if begin <= mark.begin < end:
                among.append(mark._replace(begin=mark.begin - begin, end=mark.end - begin))
        return replace_citations(self._line[begin:end], self._known, self._keep, among)

    def _keep(self, names: Sequence[str]) -> list[str]:
        known = [name for name in names if name in self._known]
        return list(dict.fromkeys(known))
