"""What ten people have said of themselves, in three languages, and everyday questions, labelled by hand before anything
was measured: which facts matter to each."""

from typing import NamedTuple


class Person(NamedTuple):
    """Facts with their importance, chatter of the user and the assistant, and questions with the facts that matter."""

    facts: list[tuple[str, int]]
    chatter: list[str]
    questions: dict[str, set[int]]


ENGLISH = [
    "Thanks, that sounds great!",
    "You're welcome! Enjoy the evening.",
    "What is the weather like?",
    "Good night!",
]
GERMAN = ["Danke, das klingt gut!", "Gern geschehen! Schönen Abend.", "Wie wird das Wetter?", "Gute Nacht!"]
CHINESE = ["谢谢,听起来不错!", "不客气!祝你晚上愉快。", "天气怎么样?", "晚安!"]

PEOPLE = [
    Person(
        [
            ("The user's name is Nora.", 8),
            ("Nora cannot drink milk.", 10),
            ("Nora lives in Bergen.", 8),
            ("Nora has two sons, Emil and Jon.", 7),
        ],
        ENGLISH,
        {
            "Hello again!": {0},
            "What shall I order at the ice cream parlour?": {1},
            "Sign this letter for me.": {0, 2},
            "Plan a Saturday for all of us.": {2, 3},
            "Write a shopping list for breakfast.": {1},
        },
    ),
    Person(
        [
            ("The user is called Tomas.", 8),
            ("Tomas is a vegetarian.", 9),
            ("Tomas drives a night bus.", 7),
            ("Tomas flies to Porto on 12 March 2027.", 7),
        ],
        ENGLISH,
        {
            "When should I sleep tomorrow?": {2},
            "What do I have to pack for?": {3},
            "A colleague invites me to a barbecue. What do I tell her?": {1},
            "Who am I?": {0},
            "Is a steak house fine tonight?": {1},
        },
    ),
    Person(
        [
            ("The user's name is Ines.", 8),
            ("Ines is afraid of flying.", 8),
            ("Ines's husband Rui uses a wheelchair.", 9),
            ("Ines teaches chemistry.", 6),
        ],
        ENGLISH,
        {
            "How do we get to Vienna?": {1, 2},
            "Find us a hut in the mountains.": {2},
            "Suggest a present for my class.": {3},
            "Introduce me to the neighbours.": {0},
            "Which cinema is good for us two?": {2},
        },
    ),
    Person(
        [
            ("The user is Sam.", 8),
            ("Sam is deaf in the left ear.", 8),
            ("Sam moved to Cork in May 2026.", 8),
            ("Sam must take a pill at eight each evening.", 10),
        ],
        ENGLISH,
        {
            "Where should I sit in the meeting?": {1},
            "Remind me of what matters tonight.": {3},
            "How long have I been here?": {2},
            "Fill in the form: name and town.": {0, 2},
            "I go to a play at seven. Anything to think of?": {1, 3},
        },
    ),
    Person(
        [
            ("Der Nutzer heißt Jonas.", 8),
            ("Jonas verträgt keine Erdbeeren.", 10),
            ("Jonas wohnt in Graz.", 8),
            ("Jonas' Tochter Lea wird am 3. Juni sechs.", 7),
        ],
        GERMAN,
        {
            "Welchen Kuchen soll ich bestellen?": {1},
            "Hallo, da bin ich wieder!": {0},
            "Was gibt es Anfang Juni zu tun?": {3},
            "Unterschreib den Brief für mich.": {0, 2},
            "Was kommt ins Frühstück?": {1},
        },
    ),
    Person(
        [
            ("Die Nutzerin heißt Mira.", 8),
            ("Mira arbeitet nachts im Spital.", 7),
            ("Mira isst kein Schweinefleisch.", 9),
            ("Miras Hund heißt Fips.", 6),
        ],
        GERMAN,
        {
            "Wann soll ich einkaufen gehen?": {1},
            "Was bestelle ich in der Kantine?": {2},
            "Wer bin ich?": {0},
            "Ich verreise eine Woche. Woran muss ich denken?": {1, 3},
            "Darf es ein Schnitzel sein?": {2},
        },
    ),
    Person(
        [
            ("Der Nutzer heißt Emre.", 8),
            ("Emre hat Höhenangst.", 8),
            ("Emre lernt für die Prüfung am 20. Februar 2027.", 8),
            ("Emre wohnt mit seiner Mutter zusammen.", 7),
        ],
        GERMAN,
        {
            "Was machen wir am Wochenende in den Bergen?": {1},
            "Soll ich im Februar verreisen?": {2},
            "Kann ich hier laut Musik hören?": {3},
            "Stell mich kurz vor.": {0},
            "Lohnt sich der Aussichtsturm?": {1},
        },
    ),
    Person(
        [("用户名叫李娜。", 8), ("李娜对花生过敏。", 10), ("李娜住在成都。", 8), ("李娜的儿子叫小明。", 7)],
        CHINESE,
        {
            "今晚吃什么?": {1},
            "你好,我又来了!": {0},
            "周末带孩子去哪里玩?": {2, 3},
            "替我在信上签名。": {0},
            "这个零食我能吃吗?": {1},
        },
    ),
    Person(
        [
            ("用户叫王强。", 8),
            ("王强在夜里上班。", 7),
            ("王强不吃辣。", 9),
            ("王强2027年2月6日结婚。", 9),
        ],
        CHINESE,
        {
            "我明天什么时候睡觉?": {1},
            "在火锅店点什么?": {2},
            "二月我有什么安排?": {3},
            "我是谁?": {0},
            "帮我安排下周。": {1, 3},
        },
    ),
    Person(
        [
            ("The user's name is Grace.", 8),
            ("Grace's mother Ruth has died in October 2026.", 10),
            ("Grace has moved to Leith.", 8),
            ("Grace keeps bees.", 5),
        ],
        ENGLISH,
        {
            "What shall I write on the card for the family dinner?": {1},
            "Good morning!": {0},
            "What should I do in the garden this week?": {3},
            "Where do I send the parcel from?": {2},
            "Draft my out-of-office note.": {0},
        },
    ),
]
