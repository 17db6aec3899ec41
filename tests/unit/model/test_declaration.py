"""One node by itself: every mistake is refused where it is made, with an error that says what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from clew.errors import BadName, BuildError, DuplicateName, UnsafeWriteConnection
from clew.model.connection import Kind, ReadConnection, WriteAction, WriteConnection
from clew.model.declaration import declare_operator, declare_source
from clew.model.event import Event
from clew.model.operator import Context, Operator
from clew.model.source import Source


class Whole(Operator):
    def __init__(self, inputs: Any = ("in",), outputs: Any = ("out",)) -> None:
        self.inputs = inputs
        self.outputs = outputs

    def assign(self, event: Event, ctx: Context) -> list[int]:
        return [event.id]

    def update(self, input_set: Any, event: Event, note: Any = None) -> None: ...

    def generate(self, input_sets: Any, ctx: Context) -> Iterable[tuple[str, Any]]:
        return ()


class Numbers(Source):
    def read(self, action: Any, offset: Any) -> Iterable[None]:
        return ()


class Table(WriteConnection):
    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def execute(self, action: WriteAction) -> None: ...


class Checked(Table):
    def is_in(self, action: WriteAction) -> bool:
        return False


def test_a_node_takes_ports_and_connections_from_its_definition() -> None:
    class Both(Whole):
        writes = {"table": Table(Kind.CONDITIONAL), "log": Table(Kind.IDEMPOTENT)}  # noqa: RUF012
        reads = {"rates": ReadConnection()}  # noqa: RUF012
        writes_first = True

    own, other = ReadConnection(), Checked("checkable")
    node = declare_operator("both", Both(("a", "b"), ["x"]), writes={"log": other}, reads={"prices": own})
    assert (node.inputs, node.outputs) == (("a", "b"), ("x",))
    assert node.writes == {"table": Both.writes["table"], "log": other}
    assert node.reads == {"rates": Both.reads["rates"], "prices": own}
    assert node.writes_first
    assert not declare_operator("both", Both(), writes_first=False).writes_first


def test_a_source_has_no_inputs() -> None:
    node = declare_source("numbers", Numbers())
    assert (node.inputs, node.outputs, node.is_source, node.is_sink) == ((), ("out",), True, False)


@pytest.mark.parametrize("name", ["", "a.b", "1st", "two words", "a/b", None, 7, "a\n"])
def test_bad_names(name: Any) -> None:
    with pytest.raises(BadName, match="expected a letter or underscore, followed by letters, digits"):
        declare_operator(name, Whole())
    with pytest.raises(BadName, match=r"^source name .* cannot be used"):
        declare_source(name, Numbers())
    with pytest.raises(BadName, match=r"^operator 'x': input port name .* cannot be used"):
        declare_operator("x", Whole(inputs=("in", name)))
    with pytest.raises(BadName, match=r"^operator 'x': write connection name .* cannot be used"):
        declare_operator("x", Whole(), writes={name: Table("conditional")})


@pytest.mark.parametrize(
    ("inputs", "outputs", "connections", "words"),
    [
        (("a", "a"), ("out",), {}, "two things named 'a', an input port and an input port"),
        (("in",), ("b", "b"), {}, "two things named 'b', an output port and an output port"),
        (("x",), ("x",), {}, "two things named 'x', an input port and an output port"),
        (("in",), ("out",), {"writes": {"out": Table("conditional")}}, "an output port and a write connection"),
        (("in",), ("out",), {"writes": {"in": Table("conditional")}}, "an input port and a write connection"),
        (("in",), ("out",), {"reads": {"in": ReadConnection()}}, "an input port and a read connection"),
        (
            ("in",),
            ("out",),
            {"reads": {"db": ReadConnection()}, "writes": {"db": Table("conditional")}},
            "two things named 'db', a write connection and a read connection",
        ),
    ],
)
def test_one_name_for_two_things(inputs: Any, outputs: Any, connections: Any, words: str) -> None:
    with pytest.raises(DuplicateName, match=words) as caught:
        declare_operator("x", Whole(inputs, outputs), **connections)
    assert str(caught.value).endswith("Rename one of them.")


def test_a_source_whose_connection_is_named_like_its_output() -> None:
    class Odd(Numbers):
        connection = "out"

    with pytest.raises(DuplicateName, match="'odd' has two things named 'out', an output port and a read connection"):
        declare_source("odd", Odd())


def test_ports_given_as_one_text() -> None:
    with pytest.raises(BuildError, match=r"the outputs of operator 'x' are 'out'; .* Write outputs = \('out',\)\."):
        declare_operator("x", Whole(outputs="out"))


def test_an_operator_without_inputs_and_a_source_without_outputs() -> None:
    with pytest.raises(BuildError, match=r"operator 'x' has no input ports; .*derive it from clew\.Source"):
        declare_operator("x", Whole(inputs=()))

    class Mute(Numbers):
        outputs = ()

    with pytest.raises(BuildError, match=r"source 'mute' has the output ports none; expected one\."):
        declare_source("mute", Mute())

    class Two(Numbers):
        outputs = ("good", "bad")

    with pytest.raises(
        BuildError, match=r"source 'two' has the output ports good, bad; .*divide its events in an oper"
    ):
        declare_source("two", Two())


def test_a_class_instead_of_an_object() -> None:
    with pytest.raises(BuildError, match=r"operator 'x' is the class Whole; expected an object. Write Whole\(\)\."):
        declare_operator("x", Whole)  # type: ignore[arg-type]
    with pytest.raises(BuildError, match=r"source 'n' is the class Numbers; expected an object. Write Numbers\(\)\."):
        declare_source("n", Numbers)  # type: ignore[arg-type]


def test_something_else_than_an_operator() -> None:
    with pytest.raises(BuildError, match=r"operator 'x' is a int; expected an object of a subclass of clew\.Operator"):
        declare_operator("x", 7)  # type: ignore[arg-type]
    with pytest.raises(BuildError, match=r"source 'n' is a Whole; expected an object of a subclass of clew\.Source"):
        declare_source("n", Whole())  # type: ignore[arg-type]


def test_missing_moves() -> None:
    class Half(Operator):
        def assign(self, event: Event, ctx: Context) -> list[int]:
            return [1]

    with pytest.raises(BuildError) as caught:
        declare_operator("x", Half())
    assert str(caught.value) == (
        "operator 'x' is a Half, which lacks update(), generate(); expected assign(), update(), generate(). "
        "Define them in Half."
    )
    with pytest.raises(BuildError, match=r"source 's' is a Source, which lacks read\(\); .* Define it in Source\."):
        declare_source("s", Source())


def test_a_move_that_only_the_object_has_counts() -> None:
    class Short(Whole):
        generate = Operator.generate

    short = Short()
    short.generate = lambda input_sets, ctx: ()  # type: ignore[method-assign,assignment,misc]
    assert declare_operator("short", short).name == "short"


@pytest.mark.parametrize("kind", [None, "", "safe", 3])
def test_a_write_connection_of_no_safe_kind(kind: Any) -> None:
    with pytest.raises(UnsafeWriteConnection) as caught:
        declare_operator("report", Whole(), writes={"to": Table(kind)})
    shown = None if kind is None else str(kind)
    assert str(caught.value).startswith(
        f"write connection 'to' of operator 'report', a Table, is of kind {shown!r}; expected 'conditional', "
        f"'checkable' or 'idempotent', since nothing else can be done exactly once across a crash."
    )
    assert "set kind = 'conditional'" in str(caught.value)


def test_something_else_than_a_write_connection() -> None:
    with pytest.raises(UnsafeWriteConnection, match=r"of operator 'report' is a list; .*subclass of clew\.WriteConnec"):
        declare_operator("report", Whole(), writes={"to": []})  # type: ignore[dict-item]


def test_a_checkable_connection_must_be_able_to_check() -> None:
    with pytest.raises(UnsafeWriteConnection, match=r"a Table of kind 'checkable', lacks is_in\(\).*Define is_in\(\)"):
        declare_operator("report", Whole(), writes={"to": Table("checkable")})
    assert declare_operator("report", Whole(), writes={"to": Checked("checkable")}).writes


def test_a_write_connection_must_be_able_to_write() -> None:
    mute = WriteConnection()
    mute.kind = "idempotent"
    with pytest.raises(UnsafeWriteConnection, match=r"a WriteConnection of kind 'idempotent', lacks execute\(\)"):
        declare_operator("report", Whole(), writes={"to": mute})


def test_something_else_than_a_read_connection() -> None:
    with pytest.raises(BuildError, match=r"read connection 'rates' of operator 'x' is a dict; expected .*ReadConnect"):
        declare_operator("x", Whole(), reads={"rates": {}})  # type: ignore[dict-item]
