"""What the model is told that writes tests by which its programs are compared."""

from langchain_core.prompts import ChatPromptTemplate

WRITE_TESTS = ChatPromptTemplate(
    [
        (
            "system",
            "You write tests for the Python function that <request> describes. Write up to {most} assert statements, "
            "each on one line, that call the function and that every right implementation passes. Let them differ: "
            "usual cases first, then cases at the edges, which a hasty implementation gets wrong. Take each expected "
            "result from the description, and leave out what it does not settle. Repeat no test that <request> shows, "
            "and write nothing else.",
        ),
        ("human", "{request}"),
    ]
)
