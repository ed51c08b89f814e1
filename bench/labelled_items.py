"""Forty items of experience, of ten kinds of work, and 200 pairs of task and item: does the condition fit the task?

The labels were written by somebody who did not know how items are looked up. A task's `fits` are all of the forty that
fit it. Its `tempts` do not, and were chosen because they share words with it or lie in its kind.
"""

from typing import NamedTuple


class Lesson(NamedTuple):
    """An item as a model would write it: its title, the condition under which it applies, and what to do."""

    title: str
    applies_when: str
    advice: str


class Labelled(NamedTuple):
    """A task with the ids of the items that fit it and of those that only seem to, four pairs together."""

    language: str
    question: str
    fits: tuple[str, ...]
    tempts: tuple[str, ...]


LESSONS = {
    "museum 1": Lesson(
        "Labels without years",
        "A label for an object on show in a museum has to be written.",
        "Leave out all years, and end with 'given by' and the donor where there is one.",
    ),
    "museum 2": Lesson(
        "Children look again",
        "The text beside an exhibit is meant for children.",
        "Stay below forty words, and close with a question that sends them back to the object.",
    ),
    "museum 3": Lesson(
        "The odd material first",
        "An exhibit made of an unusual material is described for visitors.",
        "Name the material in the first three words: it is what visitors stop for.",
    ),
    "museum 4": Lesson(
        "Thank the lender",
        "An object in an exhibition belongs to somebody else, who has lent it.",
        "Put the lender's name on a line of its own, as the lender spells it.",
    ),
    "arithmetic 1": Lesson(
        "One unit for all",
        "A word problem mixes units of one measure, such as minutes with hours or grams with kilos.",
        "Convert everything to the smaller unit before the first calculation, and back at the end.",
    ),
    "arithmetic 2": Lesson(
        "The number alone",
        "A word problem asks how much or how many, to be computed from quantities in its text.",
        "Give the bare number in the last line, without a unit and without a sentence around it.",
    ),
    "arithmetic 3": Lesson(
        "Per cent of what",
        "A word problem contains a discount, a rise or another percentage.",
        "Write down what the hundred per cent are before multiplying.",
    ),
    "arithmetic 4": Lesson(
        "One more than the gaps",
        "Things stand in a row at equal distances, and how many there are is the question.",
        "Count the gaps, then add one if both ends are occupied.",
    ),
    "sql 1": Lesson(
        "Keep those without a partner",
        "A query must also list rows that have no match in the other table.",
        "Use LEFT JOIN, and count a column of the right table instead of the star.",
    ),
    "sql 2": Lesson(
        "Empty is not unequal",
        "A WHERE clause compares a column that may be NULL.",
        "A comparison with NULL is never true: add IS NULL, or use IS DISTINCT FROM.",
    ),
    "sql 3": Lesson(
        "The newest of each group",
        "From a table the latest or largest row is wanted for each customer, device or other group.",
        "Number the rows with ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ... DESC) and keep the first.",
    ),
    "sql 4": Lesson(
        "Which database",
        "A SQL statement has to be written, and nobody has named the database product.",
        "Stay with standard SQL, and say in a line which products need a change.",
    ),
    "mail 1": Lesson(
        "The request comes first",
        "An e-mail asks a superior or a colleague at work for something.",
        "Put the request and the day by which an answer is needed into the first sentence; reasons follow.",
    ),
    "mail 2": Lesson(
        "No, because, but",
        "An invitation or a proposal is declined in writing.",
        "Give one true reason, and offer something else, such as another day.",
    ),
    "mail 3": Lesson(
        "Facts, then the demand",
        "A customer complains to a company about a faulty product or a wrong bill.",
        "Order number and dates first, then what is wrong, then what should happen until when; no anger.",
    ),
    "mail 4": Lesson(
        "The subject says it all",
        "An announcement goes to many people by e-mail.",
        "The subject line holds what, where and when, so that nobody has to open the mail.",
    ),
    "birthday 1": Lesson(
        "No word of age",
        "A birthday card is for an adult.",
        "Do not mention the age or getting older; wish something for the year to come.",
    ),
    "birthday 2": Lesson(
        "Rhymes that can be read aloud",
        "Birthday wishes are to be in verse.",
        "Four short lines with the same beat; read them aloud and drop a rhyme that bends the grammar.",
    ),
    "birthday 3": Lesson(
        "We, not I",
        "A birthday card comes from a group, such as the whole office.",
        "Write 'we' throughout, and leave out what only one of the group could say.",
    ),
    "birthday 4": Lesson(
        "The new number, large",
        "A birthday card is for a child.",
        "Name the new age in the first line: children are proud of it.",
    ),
    "review 1": Lesson(
        "Faults before taste",
        "Somebody shows code and wants an opinion on it.",
        "Name what breaks first, then what is hard to read; leave out what is a matter of taste.",
    ),
    "review 2": Lesson(
        "The default that remembers",
        "A Python function under review has a list or a dictionary as the default of an argument.",
        "Say that the default is made once and shared by all calls, and propose None.",
    ),
    "review 3": Lesson(
        "Show it failing",
        "A reviewer finds that a patch is wrong.",
        "Give the shortest input or order of events with which it goes wrong, not a rule.",
    ),
    "review 4": Lesson(
        "Who else writes here",
        "Code under review is run by several threads, processes or workers at the same time.",
        "Look at each shared value for a read followed by a write, and name the lock that is missing.",
    ),
    "cooking 1": Lesson(
        "Ask of every ingredient",
        "A meal is planned for guests with an allergy or a diet.",
        "Go through each ingredient, sauces and stock cubes included, and give a dish that all can eat.",
    ),
    "cooking 2": Lesson(
        "Spices do not grow in step",
        "A recipe is converted to a larger or smaller number of people.",
        "Scale the main ingredients exactly, salt and spices to three quarters, and times hardly at all.",
    ),
    "cooking 3": Lesson(
        "What the substitute changes",
        "An ingredient is missing, and something else has to take its part.",
        "Name one substitute with its amount, and say what will taste or set differently.",
    ),
    "cooking 4": Lesson(
        "Backwards from the table",
        "Several dishes have to be ready at the same moment.",
        "Begin with the time of serving and count back for each dish, resting included; list by the clock.",
    ),
    "translation 1": Lesson(
        "Names stay",
        "A text that names people or places is translated.",
        "Leave the names of people as they are; give places their usual name in the other language.",
    ),
    "translation 2": Lesson(
        "Formal or familiar",
        "Words addressed to somebody are translated into a language that has a formal and a familiar 'you'.",
        "Choose by the salutation, stay with it, and say in a line which was chosen.",
    ),
    "translation 3": Lesson(
        "The saying, not its words",
        "A proverb or a figure of speech is put into another language.",
        "Give the saying that people there use for the same thing, and its literal meaning in brackets.",
    ),
    "translation 4": Lesson(
        "Braces are not text",
        "Messages of a program that contain placeholders are translated.",
        "Copy the placeholders letter by letter, and move them where the grammar wants them.",
    ),
    "travel 1": Lesson(
        "Closed on Mondays",
        "A plan of what to see in a city on certain days is wanted.",
        "Check each sight's closing days before giving it a day, and leave one half day free.",
    ),
    "travel 2": Lesson(
        "Time to change",
        "A journey includes a change of trains, buses or planes.",
        "Compare the time for the change with the least that the station needs, and name the next connection.",
    ),
    "travel 3": Lesson(
        "Pack for the coldest hour",
        "Somebody asks what to take along on a trip.",
        "Go by the coldest hour and the rainiest day; clothes for half of the days are enough.",
    ),
    "travel 4": Lesson(
        "Papers by passport",
        "Somebody wants to know which documents a country asks for at its border.",
        "Rules depend on the passport: name the official page, the validity needed, and that rules change.",
    ),
    "history 1": Lesson(
        "The year and nothing else",
        "The question is in which year something happened.",
        "Answer with the four digits; no day, no sentence.",
    ),
    "history 2": Lesson(
        "Two calendars",
        "The date of an event in Russia before 1918 is given or sought.",
        "Give the date in both the old and the new calendar, and say which is which.",
    ),
    "history 3": Lesson(
        "Three causes at most",
        "The question is why something in the past came about.",
        "Give at most three causes, the weightiest first, and say what historians dispute.",
    ),
    "history 4": Lesson(
        "First by whose count",
        "The question is who was the first to do or invent something.",
        "Name the usual answer, then the rival claim, and what 'first' means in each.",
    ),
}


def _pairs(language: str, question: str, fits: str, tempts: str) -> Labelled:
    return Labelled(
        language, question, *(tuple(name.strip() for name in names.split(",") if name) for names in (fits, tempts))
    )


CASES = [
    _pairs(
        "English",
        "Write a label for a bronze lamp in our town museum; Ada Holm left it to us in 1931.",
        "museum 1",
        "museum 3, museum 4, history 1",
    ),
    _pairs(
        "English",
        "In which year was the lighthouse of Sarn Point lit?",
        "history 1",
        "museum 1, history 2, history 4",
    ),
    _pairs(
        "English",
        "We show a comb of whale bone. Write what the six- to nine-year-olds will read beside it.",
        "museum 1, museum 2, museum 3",
        "birthday 4",
    ),
    _pairs(
        "English",
        "The city gallery let us have a violin of papier-mâché until May; we need forty words for the plate beside it.",
        "museum 1, museum 3, museum 4",
        "mail 1",
    ),
    _pairs(
        "English",
        "Write a label for the jars of plum jam that I sell at the market.",
        "",
        "museum 1, museum 3, cooking 3, birthday 1",
    ),
    _pairs(
        "English",
        "A bus needs 45 minutes for a round and sets out at 6:00. How many rounds has it made by 12:00?",
        "arithmetic 1, arithmetic 2",
        "travel 2, history 1",
    ),
    _pairs(
        "English",
        "A lane is 90 metres long, with a lamp every 15 metres from one end to the other. How many lamps are there?",
        "arithmetic 2, arithmetic 4",
        "museum 1, arithmetic 1",
    ),
    _pairs(
        "English",
        "A coat of 140 euros is reduced by 15 per cent. What do I pay?",
        "arithmetic 2, arithmetic 3",
        "mail 3, arithmetic 1",
    ),
    _pairs(
        "English",
        "Explain to my daughter what a percentage is.",
        "",
        "arithmetic 2, arithmetic 3, museum 2, birthday 4",
    ),
    _pairs(
        "English",
        "Write a query that lists every customer with the number of their orders, those without any included.",
        "sql 1, sql 4",
        "sql 3, arithmetic 2",
    ),
    _pairs(
        "English",
        "For every sensor I need its last value from readings(sensor, at, value). We run PostgreSQL.",
        "sql 3",
        "sql 1, sql 4, arithmetic 1",
    ),
    _pairs(
        "English",
        "Why does SELECT * FROM people WHERE nickname <> 'Bo' leave out those who have no nickname?",
        "sql 2",
        "sql 1, sql 4, history 3",
    ),
    _pairs(
        "English",
        "Ask my boss by e-mail whether I can have next Friday off.",
        "mail 1",
        "mail 2, mail 3, mail 4",
    ),
    _pairs(
        "English",
        "Let Mr Bell know in two sentences that we cannot come to his reception on the 9th.",
        "mail 2",
        "mail 1, mail 3, birthday 3",
    ),
    _pairs(
        "English",
        "The kettle that I bought from Norvik three weeks ago leaks. Write to them.",
        "mail 3",
        "mail 1, mail 2, cooking 3",
    ),
    _pairs(
        "English",
        "All tenants must hear by mail tonight that the water will be off on Tuesday from 8 to 11.",
        "mail 4",
        "mail 1, travel 1, arithmetic 1",
    ),
    _pairs(
        "English",
        "My aunt turns sixty on Sunday. What do I write to her?",
        "birthday 1",
        "birthday 2, birthday 4, history 1",
    ),
    _pairs(
        "English",
        "Four lines that rhyme for Jonas, who will be seven tomorrow.",
        "birthday 2, birthday 4",
        "birthday 1, birthday 3",
    ),
    _pairs(
        "English",
        "All of accounts want to wish Marta well on her birthday; find something to stand above our names.",
        "birthday 1, birthday 3",
        "birthday 4, mail 4",
    ),
    _pairs(
        "English",
        "Write a card to thank the neighbours for watering our plants.",
        "",
        "birthday 1, birthday 2, birthday 3, mail 1",
    ),
    _pairs(
        "English",
        "What do you think of this? def add(x, to=[]): to.append(x); return to",
        "review 1, review 2",
        "review 4, arithmetic 2",
    ),
    _pairs(
        "English",
        "Comment on my patch: four workers now raise the counter at once, and I took the lock out.",
        "review 1, review 3, review 4",
        "arithmetic 2",
    ),
    _pairs(
        "English",
        "Write a function in Python that returns the median of a list.",
        "",
        "review 1, review 2, review 3, arithmetic 2",
    ),
    _pairs(
        "English",
        "Supper for six on Saturday; two of them must not have gluten.",
        "cooking 1",
        "cooking 2, cooking 4, travel 1",
    ),
    _pairs(
        "English",
        "My fish soup is for four. On Sunday we will be thirty. What do I buy?",
        "cooking 2",
        "cooking 1, cooking 3, arithmetic 3",
    ),
    _pairs(
        "English",
        "There is no buttermilk in the house. What else can go into the pancakes?",
        "cooking 3",
        "cooking 1, cooking 2, mail 2",
    ),
    _pairs(
        "English",
        "Roast, dumplings and red cabbage should come to the table at one. When do I start what?",
        "cooking 4",
        "cooking 2, travel 2, arithmetic 1",
    ),
    _pairs(
        "English",
        "Put into German: 'Dear Mrs Hale, could you send me the keys of the cottage?'",
        "translation 1, translation 2",
        "translation 3, mail 1",
    ),
    _pairs(
        "English",
        "How do people in Madrid say that it is raining cats and dogs?",
        "translation 3",
        "translation 1, translation 2, travel 3",
    ),
    _pairs(
        "English",
        "What is the weather like in Oslo in May?",
        "",
        "travel 1, travel 3, travel 4, history 1",
    ),
    _pairs(
        "German",
        "Drei Tage in Lissabon, von Sonntag bis Dienstag: Was sehen wir uns an?",
        "travel 1",
        "travel 3, travel 4, history 1",
    ),
    _pairs(
        "French",
        "Mon train arrive à Lyon à 10 h 52 et le suivant pour Turin part à 11 h 04. Est-ce que j'aurai les deux ?",
        "travel 2",
        "travel 4, arithmetic 1, cooking 4",
    ),
    _pairs(
        "Spanish",
        "¿Qué meto en la maleta para diez días en Islandia en octubre?",
        "travel 3",
        "travel 1, travel 4, cooking 1",
    ),
    _pairs(
        "Italian",
        "Sono italiana e vado due settimane in Kenya. Che cosa mi chiedono alla frontiera?",
        "travel 4",
        "travel 1, travel 3, history 1",
    ),
    _pairs(
        "German",
        "An welchem Tag begann der Aufstand der Dekabristen in Sankt Petersburg?",
        "history 2",
        "history 1, history 3, history 4",
    ),
    _pairs(
        "French",
        "Pourquoi l'Empire romain d'Occident est-il tombé ?",
        "history 3",
        "history 1, history 2, history 4",
    ),
    _pairs(
        "Dutch",
        "Wie vloog als eerste over de Noordpool, en in welk jaar?",
        "history 1, history 4",
        "history 2, travel 2",
    ),
    _pairs(
        "German",
        "Ein Schild für unsere Vitrine: eine Tabakdose aus Walrosszahn, geliehen vom Ehepaar Brandt.",
        "museum 1, museum 3, museum 4",
        "birthday 1",
    ),
    _pairs(
        "Polish",
        "Napisz życzenia urodzinowe dla mojej pięcioletniej siostrzenicy, najlepiej do rymu.",
        "birthday 2, birthday 4",
        "birthday 1, translation 2",
    ),
    _pairs(
        "Portuguese",
        "Um bolo para oito pessoas leva 240 g de farinha. Quantos quilos são precisos para 50 pessoas?",
        "arithmetic 1, arithmetic 2, cooking 2",
        "cooking 1",
    ),
    _pairs(
        "Swedish",
        "Skriv en SQL-fråga som visar alla elever med deras lärare, även elever utan lärare.",
        "sql 1, sql 4",
        "sql 3, review 1",
    ),
    _pairs(
        "Japanese",
        "同僚みんなから部長への誕生日カードの言葉を考えてください。",
        "birthday 1, birthday 3",
        "birthday 4, mail 1",
    ),
    _pairs(
        "Turkish",
        "Bu koda ne dersin? def ekle(x, liste=[]): liste.append(x); return liste",
        "review 1, review 2",
        "review 4, cooking 3",
    ),
    _pairs(
        "French",
        "Réponds à Mme Morel que nous ne pouvons pas accepter sa proposition de nous réunir jeudi.",
        "mail 2",
        "mail 1, mail 3, translation 2",
    ),
    _pairs(
        "Spanish",
        "Me han cobrado dos veces la luz de marzo. Redacta una carta a la compañía.",
        "mail 3",
        "mail 1, arithmetic 3, sql 2",
    ),
    _pairs(
        "German",
        "Übersetze ins Französische: „Guten Tag, {name}, Sie haben {count} neue Nachrichten.“",
        "translation 2, translation 4",
        "translation 1, mail 4",
    ),
    _pairs(
        "Italian",
        "Come si dice in tedesco «in bocca al lupo»?",
        "translation 3",
        "translation 1, cooking 3, travel 4",
    ),
    _pairs(
        "German",
        "Schreib mir ein kurzes Gedicht über den ersten Schnee.",
        "",
        "birthday 1, birthday 2, travel 3, history 4",
    ),
    _pairs(
        "French",
        "Quelle est la différence entre un crocodile et un alligator ?",
        "",
        "museum 2, translation 3, history 4, arithmetic 2",
    ),
    _pairs(
        "Korean",
        "고양이가 밤마다 우는데 어떻게 하면 좋을까요?",
        "",
        "mail 3, birthday 4, cooking 1, history 3",
    ),
]
"""The fifty tasks, twenty of them not in English; those with nothing in `fits` are of no kind that an item is for."""
