"""What the solver of `graphs.chain_of_thought` is told (Wei et al. 2022, arXiv 2201.11903; self-consistency:
2203.11171)."""

from langchain_core.prompts import ChatPromptTemplate

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
