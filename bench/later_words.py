"""The words of `bench.later`: subjects, topics in several wordings with values to take, and chatter, by language."""

from typing import NamedTuple


class Topic(NamedTuple):
    """A question about somebody, statements that answer it, and what they may say."""

    question: str
    wordings: tuple[str, ...]
    values: tuple[str, ...]


_ENGLISH = (
    Topic(
        "Where does {who} live?",
        ("{who} lives in {value} now.", "{who} has moved to {value}.", "The address of {who} is in {value}."),
        ("Turin", "Lyon", "Ghent", "Porto", "Basel", "Uppsala"),
    ),
    Topic(
        "Where does {who} work?",
        ("{who} works at the {value}.", "{who} has a job with the {value}.", "The {value} employs {who}."),
        ("bakery", "library", "harbour office", "hospital", "theatre", "brewery"),
    ),
    Topic(
        "Which instrument does {who} play?",
        ("{who} plays the {value}.", "{who} practises the {value}.", "{who} takes lessons on the {value}."),
        ("cello", "oboe", "harp", "clarinet", "viola", "trumpet"),
    ),
    Topic(
        "How does {who} get to work?",
        ("{who} goes to work by {value}.", "{who} takes the {value} to the office.", "{who} commutes by {value}."),
        ("tram", "bicycle", "ferry", "bus", "car", "train"),
    ),
    Topic(
        "What does {who} eat for breakfast?",
        ("{who} eats {value} for breakfast.", "In the morning {who} has {value}.", "{who} breakfasts on {value}."),
        ("porridge", "toast", "yoghurt", "pancakes", "rice", "fruit"),
    ),
    Topic(
        "Which language is {who} learning?",
        ("{who} is learning {value}.", "{who} attends a course in {value}.", "{who} studies {value} at night."),
        ("Finnish", "Greek", "Korean", "Arabic", "Polish", "Welsh"),
    ),
)
_GERMAN = (
    Topic(
        "Wo wohnt {who}?",
        ("{who} wohnt jetzt in {value}.", "{who} ist nach {value} gezogen.", "Die Wohnung von {who} ist in {value}."),
        ("Turin", "Lyon", "Gent", "Porto", "Basel", "Uppsala"),
    ),
    Topic(
        "Was ist {who} von Beruf?",
        ("{who} ist {value} von Beruf.", "{who} arbeitet als {value}.", "{who} verdient ihr Geld als {value}."),
        ("Lehrerin", "Tischlerin", "Richterin", "Gärtnerin", "Pilotin", "Köchin"),
    ),
    Topic(
        "Welches Instrument spielt {who}?",
        ("{who} spielt {value}.", "{who} übt jeden Abend {value}.", "{who} nimmt Unterricht, und zwar {value}."),
        ("Cello", "Oboe", "Harfe", "Klarinette", "Bratsche", "Trompete"),
    ),
    Topic(
        "Wie kommt {who} zur Arbeit?",
        ("{who} fährt mit {value} zur Arbeit.", "{who} nimmt morgens {value}.", "Zum Büro kommt {who} mit {value}."),
        ("Bus", "Fahrrad", "Fähre", "Auto", "Roller", "Zug"),
    ),
)
_CHINESE = (
    Topic(
        "{who}住在哪里？",
        ("{who}现在住在{value}。", "{who}搬到了{value}。", "{who}的家在{value}。"),
        ("都灵", "里昂", "成都", "巴塞尔", "杭州", "青岛"),
    ),
    Topic(
        "{who}在哪里工作？",
        ("{who}在{value}工作。", "{who}的工作单位是{value}。", "{who}去{value}上班了。"),
        ("面包店", "图书馆", "港务局", "医院", "剧院", "啤酒厂"),
    ),
    Topic(
        "{who}学什么乐器？",
        ("{who}在学{value}。", "{who}每天晚上练{value}。", "{who}的乐器是{value}。"),
        ("大提琴", "双簧管", "竖琴", "单簧管", "中提琴", "小号"),
    ),
    Topic(
        "{who}怎么上班？",
        ("{who}坐{value}上班。", "{who}每天早上坐{value}。", "{who}上班的交通工具是{value}。"),
        ("电车", "渡轮", "公交车", "地铁", "出租车", "火车"),
    ),
)

LANGUAGES: dict[str, tuple[tuple[str, ...], tuple[Topic, ...]]] = {
    "English": (("My sister Ada", "My boss", "Mr Okafor", "Nadia", "My neighbour", "Uncle Piet"), _ENGLISH),
    "German": (("Meine Schwester", "Meine Chefin", "Frau Okafor", "Nadja", "Meine Nachbarin", "Tante Grete"), _GERMAN),
    "Chinese": (("我姐姐", "我老板", "王先生", "小李", "我邻居", "我舅舅"), _CHINESE),
}
"""Who is told about, and what."""
CHATTER: dict[str, tuple[str, ...]] = {
    "English": (
        "What a lovely morning!",
        "I could not sleep last night.",
        "Can you suggest a film for tonight?",
        "The train was late again.",
        "Thanks, that helps a lot.",
        "I burnt the soup.",
    ),
    "German": (
        "Was für ein schöner Morgen!",
        "Ich konnte letzte Nacht nicht schlafen.",
        "Welchen Film soll ich heute ansehen?",
        "Der Zug war wieder zu spät.",
        "Danke, das hilft mir sehr.",
        "Die Suppe ist angebrannt.",
    ),
    "Chinese": (
        "今天早上天气真好！",
        "我昨晚没睡好。",
        "今晚看什么电影好？",
        "火车又晚点了。",
        "谢谢，帮了大忙。",
        "汤烧糊了。",
    ),
}
