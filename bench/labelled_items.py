"""Forty items of experience, of ten kinds of work; `bench.labelled_tasks` says which of them fit which task."""

from typing import NamedTuple


class Lesson(NamedTuple):
    """An item as a model would write it: its title, the condition under which it applies, and what to do."""

    title: str
    applies_when: str
    advice: str


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
