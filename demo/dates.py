"""Numbers, dates and clock times as (English, German). Knows no sentences.

German puts the unit first (twenty-one, einundzwanzig) and counts half hours to the hour to come
(half past six, halb sieben).
"""

from __future__ import annotations

from functools import cache

Pair = tuple[str, str]
Pairs = tuple[Pair, ...]


def _pairs(table: str) -> Pairs:
    pairs = []
    for line in table.strip().split("\n"):
        for entry in line.split(";"):
            english, german = entry.split("=")
            pairs.append((english.strip(), german.strip()))
    return tuple(pairs)


_SMALL = _pairs("""
zero = null; one = eins; two = zwei; three = drei; four = vier; five = fünf; six = sechs
seven = sieben; eight = acht; nine = neun; ten = zehn; eleven = elf; twelve = zwölf
thirteen = dreizehn; fourteen = vierzehn; fifteen = fünfzehn; sixteen = sechzehn
seventeen = siebzehn; eighteen = achtzehn; nineteen = neunzehn; twenty = zwanzig
thirty = dreißig; forty = vierzig; fifty = fünfzig; sixty = sechzig; seventy = siebzig
eighty = achtzig; ninety = neunzig
""")
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
    "twenty": "twentieth",
    "thirty": "thirtieth",
}
_ORDNUNGSZAHLEN = {1: "erst", 3: "dritt", 7: "siebt", 8: "acht"}


@cache
def number(n: int) -> Pair:
    """Return a number from 1 to 999 in words."""
    if n <= 20:
        return _SMALL[n]
    if n < 100:
        return _two_digits(n)
    hundreds, rest = divmod(n, 100)
    count, zahl = _SMALL[hundreds]
    english = f"{count} hundred"
    german = "einhundert" if hundreds == 1 else f"{zahl}hundert"
    if not rest:
        return english, german
    english_rest, german_rest = number(rest)
    return f"{english} and {english_rest}", german + german_rest


def _two_digits(n: int) -> Pair:
    tens, ones = divmod(n, 10)
    english_tens, german_tens = _SMALL[18 + tens]
    if not ones:
        return english_tens, german_tens
    english_ones, german_ones = _SMALL[ones]
    if ones == 1:
        german_ones = "ein"
    return f"{english_tens}-{english_ones}", f"{german_ones}und{german_tens}"


def ordinal(n: int) -> Pair:
    """Return an ordinal from 1 to 31 in words; the German lacks its ending."""
    english, german = number(n)
    tens, hyphen, last = english.rpartition("-")
    english_ordinal = tens + hyphen + _ORDINALS.get(last, f"{last}th")
    regular = f"{german}t" if n < 20 else f"{german}st"
    return english_ordinal, _ORDNUNGSZAHLEN.get(n, regular)


def clock(hour: int, minutes: int) -> Pair:
    """Return a time in words: "at twenty to one", "um zwanzig vor eins".

    The hour is 1 to 12, the minutes are a multiple of five.
    """
    this, diese = _SMALL[hour]
    following, folgende = _SMALL[hour % 12 + 1]
    if minutes == 0:
        stunde = "ein" if hour == 1 else diese
        return f"at {this} o'clock", f"um {stunde} Uhr"
    if minutes == 30:
        return f"at half past {this}", f"um halb {folgende}"
    count, zahl = number(min(minutes, 60 - minutes))
    if minutes in (15, 45):
        count = "a quarter"
        zahl = "Viertel"
    if minutes < 30:
        return f"at {count} past {this}", f"um {zahl} nach {diese}"
    return f"at {count} to {following}", f"um {zahl} vor {folgende}"


MONTHS = _pairs("""
January = Januar; February = Februar; March = März; April = April; May = Mai; June = Juni
July = Juli; August = August; September = September; October = Oktober; November = November
December = Dezember
""")
DAYS = _pairs("""
Monday = Montag; Tuesday = Dienstag; Wednesday = Mittwoch; Thursday = Donnerstag; Friday = Freitag
Saturday = Samstag; Sunday = Sonntag
""")
_PARTS = _pairs("morning = Morgen; afternoon = Nachmittag; evening = Abend")
_SPANS = _pairs("days = Tagen; weeks = Wochen; months = Monaten; years = Jahren")
_SEASONS = (
    *MONTHS,
    *_pairs("spring = Frühling; summer = Sommer; autumn = Herbst; winter = Winter"),
)
_WEEKDAYS = tuple((f"on {day}", f"am {tag}") for day, tag in DAYS)
_DAYPARTS = tuple(
    (f"{on} {part}", f"{am}{teil.lower()}") for on, am in _WEEKDAYS for part, teil in _PARTS
)
_DATES = tuple(
    (f"on the {ordinal(n)[0]} of {month}", f"am {ordinal(n)[1]}en {monat}")
    for month, monat in MONTHS
    for n in range(1, 30)
)
_COUNTED = tuple(
    (f"{number(n)[0]} {span}", f"{number(n)[1]} {spanne}")
    for n in range(2, 13)
    for span, spanne in _SPANS
)
HOURS = tuple(
    clock(hour, minutes)
    for hour in range(1, 13)
    for minutes in (0, 0, 10, 15, 20, 30, 30, 40, 45, 50)
)

# When it was, will be and usually is; each a choice of choices.
PAST: tuple[Pairs, ...] = (
    _pairs("""
yesterday = gestern; yesterday evening = gestern Abend
yesterday afternoon = gestern Nachmittag
"""),
    _pairs("last week = letzte Woche; last month = letzten Monat; last year = letztes Jahr"),
    tuple((f"last {day}", f"letzten {tag}") for day, tag in DAYS),
    tuple((f"{english} ago", f"vor {german}") for english, german in _COUNTED),
    *(_WEEKDAYS, _DAYPARTS, _DATES),
)
COMING: tuple[Pairs, ...] = (
    _pairs("""
tomorrow = morgen; tomorrow evening = morgen Abend
tomorrow afternoon = morgen Nachmittag
"""),
    _pairs("next week = nächste Woche; next month = nächsten Monat; next year = nächstes Jahr"),
    tuple((f"next {day}", f"nächsten {tag}") for day, tag in DAYS),
    tuple((f"in {english}", f"in {german}") for english, german in _COUNTED),
    *(_WEEKDAYS, _DAYPARTS, _DATES),
)
USUAL: tuple[Pairs, ...] = (
    _pairs("""
every day = jeden Tag; every morning = jeden Morgen
every evening = jeden Abend; every week = jede Woche
"""),
    tuple((f"every {day}", f"jeden {tag}") for day, tag in DAYS),
    tuple((f"in {season}", f"im {zeit}") for season, zeit in _SEASONS),
    tuple((f"in the {part}", f"am {teil}") for part, teil in _PARTS),
    *(_WEEKDAYS, _DAYPARTS, HOURS),
)
