"""What the responder of `graphs.reflexion` is told (Shinn et al. 2023, arXiv 2303.11366, adapted to questions with
search)."""

from langchain_core.prompts import ChatPromptTemplate

from reflective_agents.prompts.search import ALONE, CITE, MATERIAL, TODAY

_FORM = "in the form and the language that it calls for, in about 250 words unless it asks for another length"

_DRAFT = f"""You answer questions, and check and improve your answers. {TODAY}
1. Answer the user's question from what you know, {_FORM}. If you know nothing of it, say so in a sentence.
2. Criticise your answer severely: what is missing, wrong or not certain, and what is superfluous."""

_REVISE = f"""You answer questions, and check and improve your answers. {TODAY}
1. Rewrite the whole answer, {_FORM}. Use your critique of the last answer: add what was missing, correct what was \
wrong, remove what was superfluous."""

_CRITICISE = (
    "Criticise the new answer: what is still missing? Call it complete if it gives all that was asked for. It is "
    "incomplete as long as a part of that is missing, even one that cannot be found."
)

DRAFT = ChatPromptTemplate([("system", "{instructions}"), ("placeholder", "{conversation}")])
REVISE = ChatPromptTemplate(
    [
        ("system", "{instructions}"),
        ("placeholder", "{conversation}"),
        ("placeholder", "{scratch}"),
        ("human", "{todo}"),
    ]
)

DRAFT_TO_SEARCH = f"""{_DRAFT}
3. Recommend 1 to 3 search queries that would supply what is missing. Only you see this answer; the next one cites \
what the searches find, and so names the sources."""
DRAFT_ALONE = f"""{_DRAFT}
3. Leave the search queries empty. {ALONE}"""

REVISE_BY_RESULTS = f"""{_REVISE}
2. Use the search results. {CITE} {MATERIAL}
3. {_CRITICISE} Recommend new search queries only for what they may still supply. What was searched for and not found, \
the answer says in a sentence, and needs no further query. Without a query you can only mend it \
once more, if it is not complete."""
REVISE_ALONE = f"""{_REVISE}
2. {ALONE}
3. {_CRITICISE} Leave the search queries empty."""

TODO = "Rewrite your answer to my question, using the search results above."
TODO_NOTHING_NEW = """The last searches have brought nothing new: there is no result beyond those above. Rewrite your \
answer to my question, and say in it what could not be found."""
TODO_MEND = "Rewrite your answer to my question, without the faults that your own critique has named."
LAST_TODO = " This is the last revision: no further search follows."
TODO_ALONE = "Rewrite your answer to my question."
WRONG_SOURCES = "these results do not exist: {names}. Cite only the numbers listed"
REMOVED = "The last answer referred to what no search has found; that was removed: {names}"

GATHER = ChatPromptTemplate(
    [
        (
            "system",
            "You gather what an answer to the user's last message still lacks. Call the tools that can supply it, "
            "several at once if they are independent; call none if none can.",
        ),
        ("placeholder", "{conversation}"),
        (
            "human",
            "The answer so far:\n{answer}\n\nWhat it lacks:\n{missing}\n\nWhat is searched for already:\n{queries}",
        ),
    ]
)
