"""Questions for real models: word problems, ten and six, and six about a made-up valley that only its articles know."""

from reflective_agents.environments.base import Task

_PROBLEMS = {
    "A baker makes 7 trays of 12 rolls and sells 59 of the rolls. How many are left?": "25",
    "A coat of 80 euros costs 25 per cent less today. What does it cost today, in euros?": "60",
    "Lena saves 15 euros a week. How much does she have after 6 weeks if she began with 40 euros?": "130",
    "A tank holds 90 litres. It fills with 8 litres a minute and leaks 2 litres a minute. "
    "After how many minutes is the empty tank full?": "15",
    "Three friends share a bill of 84 euros equally, and each adds a tip of 2 euros. What does each of them pay?": "30",
    "A train goes 240 km in 3 hours. How many km does it go in 5 hours at the same speed?": "400",
    "Tom has twice as many marbles as Ben, who has 18. How many do both have together?": "54",
    "A class of 32 has 4 more girls than boys. How many girls are there?": "18",
    "A book of 300 pages is read at 20 pages a day for 9 days. How many pages are left?": "120",
    "Pens cost 3 euros each, or 5 for 12 euros. What do 11 pens cost at least, in euros?": "27",
}
_MORE_PROBLEMS = {
    "A shop sells apples at 2 euros a kilo. Mia buys 3.5 kilos and pays with 10 euros. What change does she get?": "3",
    "A rope of 45 metres is cut into 6 equal pieces, and 3 metres are left. How long is each, in metres?": "7",
    "Every 20 minutes a bus leaves, the first at 6:00. How many buses have left by 8:00, that of 8:00 included?": "7",
    "A garden is 12 metres long and 5 metres wide. How long is a fence around it, in metres?": "34",
    "Jan reads half of a book of 240 pages today, and a third of the rest tomorrow. How many pages are left?": "80",
    "A factory makes 150 chairs a day, 4 per cent of them faulty. How many good chairs does it make in 5 days?": "720",
}
_ABOUT_TEXTS = {
    "Who built the stone bridge of Ormevale?": "Tilda Brack",
    "In which year was the lighthouse of Sarn Point lit for the first time?": "1874",
    "Which instrument does the mayor of Ormevale play?": "bassoon",
    "In which village was the builder of Ormevale's stone bridge born?": "Hask",
    "How high, in metres, is the hill on which the village of Hask stands?": "212",
    "Which cheese is made in the village where the mayor of Ormevale was born?": "Pellin",
}
ARTICLES = {
    "bridge": "The stone bridge of Ormevale crosses the river Lorne in three arches. It was built by Tilda Brack, who "
    "finished it in 1791 after six years of work.",
    "brack": "Tilda Brack was a builder of bridges. She was born in the village of Hask and learned her trade from an "
    "uncle, a mason.",
    "hask": "Hask is a village on a hill 212 metres high, north of the river Lorne. It has a mill and a market.",
    "lighthouse": "The lighthouse of Sarn Point was lit for the first time in 1874. Its lamp burned oil until 1926.",
    "mayor": "The mayor of Ormevale is Jonas Ferrel. He was born in the village of Dunmoor and plays the bassoon in "
    "the town's band.",
    "dunmoor": "Dunmoor is a village of shepherds west of Ormevale. A cheese called Pellin is made there, from the "
    "milk of sheep.",
}


def _tasks(kind: str, questions: dict[str, str], first: int = 1) -> list[Task]:
    return [
        Task(id=f"{kind} {number}", question=question, gold=gold)
        for number, (question, gold) in enumerate(questions.items(), first)
    ]


PROBLEMS = _tasks("arithmetic", _PROBLEMS)
MORE_PROBLEMS = _tasks("arithmetic", _MORE_PROBLEMS, len(PROBLEMS) + 1)
ABOUT_TEXTS = _tasks("text", _ABOUT_TEXTS)
_SHARES = [(number / len(tasks), task) for tasks in (PROBLEMS, ABOUT_TEXTS) for number, task in enumerate(tasks, 1)]
IN_TURN = [task for _, task in sorted(_SHARES, key=lambda pair: pair[0])]
"""All of them, the two kinds mixed: a run that is broken off has asked some of each."""
