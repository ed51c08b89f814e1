"""What the solver of `graphs.chain_of_thought` is told (Wei et al. 2022, arXiv 2201.11903; self-consistency:
2203.11171)."""

from langchain_core.prompts import ChatPromptTemplate

OPEN_FORM = """If the request asks for a fact, a number, a name or a choice, end with a line 'Answer: ...' that holds \
the answer alone, as short as possible. If it asks for a text, such as to write or to explain something, reply with \
that text alone and whole, without such a line."""
"""The form of an answer to an open question."""

SOLVE = ChatPromptTemplate(
    [
        (
            "system",
            "{task}Solve the task by thinking step by step. {form}{lessons}",
        ),
        ("placeholder", "{conversation}"),
        ("human", "{material}{request}"),
    ]
)
