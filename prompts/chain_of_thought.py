"""What the solver of `graphs.chain_of_thought` is told (Wei et al. 2022, arXiv 2201.11903; self-consistency:
2203.11171)."""

from langchain_core.prompts import ChatPromptTemplate

SOLVE = ChatPromptTemplate(
    [
        (
            "system",
            "Solve the task by thinking step by step. {form}{examples}{lessons}",
        ),
        ("placeholder", "{conversation}"),
        ("human", "{material}{request}"),
    ]
)

FORM = "End with a line 'Answer: ...' that holds the answer alone, as short as possible."
FORMS = {
    "fever": "End with a line 'Answer: SUPPORTS', 'Answer: REFUTES' or 'Answer: NOT ENOUGH INFO'.",
    "game24": "End with a line 'Answer: expression = 24' that uses each number once.",
    "crosswords": "End with a line 'Output:' and the five rows of the board, five letters each, parted by blanks.",
    "programming": "Write the whole function in one ```python block.",
    "blocksworld": "End with a line 'Plan:' and the actions of the plan, one a line, and nothing after them.",
    "arithmetic": "End with a line 'Answer: number'.",
}

EXAMPLES = {
    "": """

Example:
Question: A train leaves at 9:40 and arrives at 11:05. How long does it take?
From 9:40 to 10:40 is one hour; from 10:40 to 11:05 are 25 minutes.
Answer: 1 hour 25 minutes""",
    "questions": """

Example:
Question: Were the authors of Dracula and of Ulysses born in the same city?
Dracula is by Bram Stoker, born in Dublin. Ulysses is by James Joyce, born in Dublin.
Answer: yes""",
    "fever": """

Example:
Claim: The river Elbe flows into the Baltic Sea.
The Elbe flows into the North Sea.
Answer: REFUTES""",
    "game24": """

Example:
Numbers: 2 3 4 12
4 - 3 = 1, which leaves 1 2 12. 2 * 12 = 24, which leaves 1 24. 1 * 24 = 24.
Answer: (4 - 3) * 2 * 12 = 24""",
}
