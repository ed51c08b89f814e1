"""Which brackets cite: those behind a word or a sentence; content in brackets is none, in any language."""

import random

from reflective_agents.text.brackets import marks, read_line

CERTAIN = [
    "So [2].",
    "The tower is tall [1], wide [2], and deep [3].",
    "Two things [1, 2] are so.",
    "Built in 1889 [1]; opened [2].",
    "Built in 1889.[1] Opened then.",
    "Built in 1889.[1][2]",
    "It is tall. [1] It is wide.",
    "(see [1])",
    "the [third] [1]",
    "tall ([1]).",
    "**tall** [1].",
    "tall **[1]**.",
    '"tall" [1].',
    "It costs $5 [1] and $6 [2].",
    "It costs 30 € [1], or 30€ [2].",
    "It costs 30 $ [1, 2].",
    "It is 20° [1], at 3‰ [2].",
    "Acme® [1] says it is rated 4★ [2].",
    "Set `max_calls` [1] and `max_seconds` [2, 3].",
    "By $E=mc^2$ [1].",
    "1. Search [1]\n- Answer [2]\n> Quote [3]",
    "tall [1], [2] and [3]",
    "As [s1] says, [s2]",
    "remembered [m1, m3]",
    "tall [1] – and wide",
    "Der Turm ist 330 m hoch [1].",
    "La tour mesure 330 m [1].",
    "Высота башни 330 метров [1].",
    "埃菲尔铁塔高330米[1][2]。",
    "高330米。[1] 它很高【2】。",
    "高さは330メートルです[1]。",
    "높이는 330미터이다 [1].",
    "หอไอเฟลสูง 330 เมตร [1]",
    "الارتفاع 330 مترا [1].",
    "यह 330 मीटर है [1]।",
    "\u1016\u103c\u1005\u104b [1]",
    "Take `a[0]`, which is so [1].",
    "```\nx\n```\nso [1]",
]
POSSIBLE = [
    "according to [1]",
    "As [1] says",
    "Built in 1889[1].",
    "in France[1]",
    "a[0] and France[1].",
    "The list is [3].",
    "The answer: [1]",
    "| height | 330 m | [1] |",
    "[1] says so",
    "Sure! [1, 2, 3]",
    '"tall"[1].',
    "It costs 30€[1].",
    "价格为30¥[1]。",
    "Set `max_calls`[1].",
    "C++ [1] is fast.",
    "Done ✓ [1]",
    "● [1] Smith, On trees",
    "│ [1] │",
    "For ages 18+ [1].",
    "tall<sup>[1]</sup>",
]
CONTENT = [
    "The sorted list is [1, 2, 3].",
    "Scores lie in [0, 1], or in [1, 3].",
    "The edition of [2024].",
    "a[1] is 7",
    "swap a[1], a[2]",
    "items[7] is 7, x_1[2] and dp[3].",
    "foo(3)[0] + foo(3)[1]",
    "x = [1, 2]",
    "xs += [1]",
    "a + [1]",
    "2 × [1, 2]",
    "x → [1]",
    "x++ [1, 2]",
    "result ➔ [1, 2]",
    "price: € [30, 40]",
    "★★ [3, 4]",
    "`xs`[1] is 2",
    "Result: [1, 2, 3]",
    "[1, 2, 3]",
    "[1, 2] + [3] = [1, 2, 3]",
    "[[1, 2], [3, 4]]",
    '{"a": [1, 2], "b": [3]}',
    "print([1, 2, 3])",
    "sorted([3, 1, 2]) gives [1, 2, 3]",
    "[1, 2, 3].append(4)",
    "see [1](https://a.example) and [2](https://b.example), or [the page][1]",
    "a note[^1]\n\n[^1]: a footnote\n[1]: https://a.example",
    "| sort | x = [1, 2, 3] |",
    "the interval [1, 5], the vector [1, 2]",
    "`x [1]`, ``y [2]`` and\n```python\nz [3]\n```",
    "~~~\nz [3]\n~~~",
    "$x \\in [1, 2]$, \\(y [3]\\), \\[z [4]\\]",
    "$$\nx [1]\n$$",
    "an escaped \\[1\\]",
    "'[1]' or \"[1, 2]\"",
    "Die Liste lautet [1, 2, 3].",
    "La liste triée est [1, 2, 3].",
    "La lista ordenada es [1, 2, 3].",
    "Отсортированный список: [1, 2, 3].",
    "排序后的列表是[1, 2, 3]。",
    "结果为：[1, 2]",
    "リストは[1, 2, 3]です。",
    "정렬된 목록은 [1, 2, 3]입니다.",
    "ผลลัพธ์คือ [1, 2, 3]",
]


def test_behind_a_word_or_a_sentence_it_cites() -> None:
    for text in CERTAIN:
        found = marks(text)
        assert [mark.certain for mark in found] == [True] * len(found)
        assert found


def test_where_both_are_possible_it_is_not_certain() -> None:
    for text in POSSIBLE:
        assert [mark.certain for mark in marks(text)] == [False]


def test_content_is_no_citation() -> None:
    for text in CONTENT:
        assert marks(text) == []


def test_content_beside_content_is_none_either() -> None:
    for seed in range(300):
        text = "\n".join(random.Random(seed).choices(CONTENT, k=4))
        assert marks(text) == []


def test_what_is_settled_of_a_line_stays_so_whatever_follows() -> None:
    for text in [*CERTAIN, *POSSIBLE, *CONTENT]:
        line = text.split("\n")[0]
        whole = read_line(line)
        for end in range(len(line) + 1):
            part = read_line(line[:end])
            for mark in part.marks:
                assert mark.begin >= part.settled or mark in whole.marks
            assert {mark for mark in whole.marks if mark.begin < part.settled} <= {*part.marks}
