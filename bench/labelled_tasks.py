"""200 pairs of a task and an item of `bench.labelled_items`: does the condition of the item fit the task?

The labels were written by somebody who did not know how items are looked up. A task's `fits` are all of the forty that
fit it. Its `tempts` do not, and were chosen because they share words with it or lie in its kind.
"""

from typing import NamedTuple


class Labelled(NamedTuple):
    """A task with the ids of the items that fit it and of those that only seem to, four pairs together."""

    language: str
    question: str
    fits: tuple[str, ...]
    tempts: tuple[str, ...]


def _pairs(language: str, question: str, fits: str, tempts: str) -> Labelled:
    return Labelled(language, question, _names(fits), _names(tempts))


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split(", ")) if listed else ()


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
