"""Options are read strictly: what is misspelt or of the wrong type is refused with a sentence
that helps."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import (
    Range,
    assignments,
    build,
    check_ranges,
    describe,
    load_toml,
    merge,
    one_of,
    to_dict,
    to_toml,
)
from dragoman.errors import OptionError


@dataclass(frozen=True)
class Engine:
    power: Annotated[int, "in watts"] = 100
    fuel: Annotated[str, "what it burns"] = "coal"
    share: Annotated[float, "of what it burns"] = 0.5
    length: int = 1

    def __post_init__(self) -> None:
        one_of("engine.fuel", self.fuel, ("coal", "wood", "true"))


@dataclass(frozen=True)
class Tender:
    length: Annotated[int, "in metres"] = 5
    names: Annotated[tuple[str, ...], "painted on it"] = ()
    loads: tuple[float, ...] = ()
    spare: Annotated[int | None, "wheels, if any"] = None


@dataclass(frozen=True)
class Train:
    title: Annotated[str, "of the train"] = "Puffer"
    late: bool = False
    engine: Engine = field(default_factory=Engine)
    tender: Tender = field(default_factory=Tender)


@dataclass(frozen=True)
class Needy:
    must: int
    may: int = 0


def test_tables_become_a_config() -> None:
    train = build(
        Train,
        {
            "late": True,
            "engine": {"share": 1},
            "tender": {"names": ["a", "b"], "loads": [1, 2.5], "spare": 3},
        },
    )
    assert train == Train(
        late=True,
        engine=Engine(share=1.0),
        tender=Tender(names=("a", "b"), loads=(1.0, 2.5), spare=3),
    )
    assert type(train.engine.share) is float
    assert [type(load) for load in train.tender.loads] == [float, float]
    assert build(Train, {}) == Train()


def test_one_word_where_a_list_is_wanted() -> None:
    assert build(Train, {"tender": {"names": "alone"}}).tender.names == ("alone",)


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"titel": "x"}, "unknown option 'titel'; did you mean 'title'?"),
        ({"engine": {"powr": 1}}, "unknown option 'engine.powr'; did you mean 'power'?"),
        ({"xyzzy": 1}, "unknown option 'xyzzy'"),
        ({"engine": {"power": 1.0}}, "'engine.power' must be a whole number, not 1.0"),
        ({"engine": {"power": True}}, "'engine.power' must be a whole number, not True"),
        ({"engine": {"power": "9"}}, "'engine.power' must be a whole number, not '9'"),
        ({"engine": {"share": "half"}}, "'engine.share' must be a number, not 'half'"),
        ({"engine": {"share": float("nan")}}, "'engine.share' must be a number, not nan"),
        ({"engine": {"share": float("inf")}}, "'engine.share' must be a number, not inf"),
        ({"engine": {"share": True}}, "'engine.share' must be a number, not True"),
        ({"late": 1}, "'late' must be true or false, not 1"),
        ({"late": "true"}, "'late' must be true or false, not 'true'"),
        ({"title": 3}, "'title' must be a word, not 3"),
        ({"title": "\udcff"}, "'title' must be text in UTF-8, not '\\udcff'"),
        ({"title": ["a"]}, "'title' must be a word, not ['a']"),
        ({"engine": 3}, "'engine' is a table of options, not 3"),
        ({"tender": {"names": ["a", 1]}}, "'tender.names' must be a word, not 1"),
        ({"tender": {"spare": "x"}}, "'tender.spare' must be a whole number, not 'x'"),
        (
            {"engine": {"fuel": "coke"}},
            "engine.fuel is 'coke'; it must be one of coal, wood, true; did you mean 'coal'?",
        ),
    ],
)
def test_what_is_refused(tables: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError) as caught:
        build(Train, tables)
    assert str(caught.value) == sentence


def test_a_field_without_a_default() -> None:
    assert build(Needy, {"must": 1}) == Needy(1)
    with pytest.raises(OptionError, match=r"^'must' is missing; it has no default$"):
        build(Needy, {"may": 1})


def test_true_as_a_word() -> None:
    """--set fuel=true reads as a truth value; an option whose words include `true` means the
    word."""
    assert build(Train, assignments(Train, ["fuel=true"])).engine.fuel == "true"


def test_layers_lie_on_one_another() -> None:
    low = {"title": "a", "engine": {"power": 1, "fuel": "wood"}}
    assert merge(low, {"engine": {"power": 2}}, {"title": "b"}) == {
        "title": "b",
        "engine": {"power": 2, "fuel": "wood"},
    }
    assert low == {"title": "a", "engine": {"power": 1, "fuel": "wood"}}
    assert merge({"engine": {"power": 1}}, {"engine": 5}) == {"engine": 5}


def test_assignments() -> None:
    items = [
        "power=7",
        "engine.fuel=wood",
        "tender.names=['a', \"b c\"]",
        "late=true",
        "title=two words",
        "share = 0.25",
    ]
    assert assignments(Train, items) == {
        "engine": {"power": 7, "fuel": "wood", "share": 0.25},
        "tender": {"names": ["a", "b c"]},
        "late": True,
        "title": "two words",
    }
    assert assignments(Train, ["title=a=b"]) == {"title": "a=b"}
    assert assignments(Train, ["title="]) == {"title": ""}
    assert assignments(Train, ["power=1", "power=2"]) == {"engine": {"power": 2}}


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("length=3", "'length' could be engine.length or tender.length; write the whole name"),
        ("powr=3", "unknown option 'powr'; did you mean 'power'?"),
        ("engine.powr=3", "unknown option 'engine.powr'; did you mean 'engine.power'?"),
        ("engine=3", "unknown option 'engine'"),
        ("power", "'power' is not an assignment; write --set key=value"),
        ("=3", "unknown option ''"),
    ],
)
def test_assignments_that_are_refused(item: str, sentence: str) -> None:
    with pytest.raises(OptionError) as caught:
        assignments(Train, [item])
    assert str(caught.value).startswith(sentence)


def test_every_field_is_described() -> None:
    rows = {one.name: (one.kind, one.default, one.help) for one in describe(Train)}
    assert list(rows)[:3] == ["title", "late", "engine.power"]
    assert rows["engine.power"] == ("a whole number", 100, "in watts")
    assert rows["tender.names"] == ("a list, each a word", (), "painted on it")
    assert len(rows) == 10


@dataclass(frozen=True)
class Ticket:
    seats: Annotated[int, "to sit on", Range(1, most=4)] = 1
    price: Annotated[float, Range(above=0), "in crowns"] = 1.0

    def __post_init__(self) -> None:
        check_ranges(self)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"seats": 0}, "seats is 0; it must be at least 1 and at most 4"),
        ({"seats": 5}, "seats is 5; it must be at least 1 and at most 4"),
        ({"price": 0.0}, "price is 0.0; it must be above 0"),
        ({"price": float("nan")}, "price is nan; it must be above 0"),
        ({"price": float("inf")}, "price is inf; it must be above 0"),
    ],
)
def test_numbers_outside_their_range(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError) as caught:
        Ticket(**values)
    assert str(caught.value) == sentence


def test_a_range_is_part_of_the_description() -> None:
    seats, price = describe(Ticket)
    assert (seats.hint, seats.help, seats.range) == (int, "to sit on", Range(1, most=4))
    assert (price.hint, price.help, price.range) == (float, "in crowns", Range(above=0))
    assert Ticket(seats=4, price=0.01).seats == 4


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    [
        '"',
        "\\",
        "'''",
        '"""',
        "\x7f",
        "\x00\x1f",
        "\r\n\t",
        "# no comment",
        "\u2028",
        "a = 1\n[b]",
        "😀",
        "\ufeff",
    ]
)


@given(
    title=TEXT,
    names=st.lists(TEXT, max_size=4),
    share=st.floats(allow_nan=False, allow_infinity=False),
    power=st.integers(-(2**62), 2**62),
    late=st.booleans(),
    spare=st.none() | st.integers(0, 9),
)
def test_what_is_written_reads_back(
    title: str, names: list[str], share: float, power: int, late: bool, spare: int | None
) -> None:
    tender = Tender(names=tuple(names), loads=(share, 1.0), spare=spare)
    train = Train(title=title, late=late, engine=Engine(power=power, share=share), tender=tender)
    assert build(Train, tomllib.loads(to_toml(train))) == train
    assert build(Train, to_dict(train)) == train


def test_written_lines_carry_their_help() -> None:
    lines = to_toml(Train()).splitlines()
    assert lines[0] == 'title = "Puffer"  # of the train'
    assert "power = 100  # in watts" in lines


def test_toml_files(tmp_path: Path) -> None:
    with pytest.raises(
        OptionError, match=r"none\.toml does not exist; name a TOML file of options"
    ):
        load_toml(tmp_path / "none.toml")
    for content in (b"a = ", b"a = '\xff'", b"[a\n"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(OptionError, match=r"bad\.toml is not a TOML file: ") as caught:
            load_toml(tmp_path / "bad.toml")
        assert "\n" not in str(caught.value)
