"""Path summaries: what a path does at least to the time of whatever travels along it.

A summary is a monotone function of times that never decreases one. Summaries form a monoid: `followed_by` is
associative and IDENTITY is neutral. (Progress thesis, sections 2.2.1 and 4.2.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clew.errors import BuildError
from clew.times.order import Poset, Time, as_tuples


class Summary(ABC):
    """A monotone function of times that never decreases one. A subclass needs `results_in`."""

    @abstractmethod
    def results_in(self, time: Time) -> Time:
        """The earliest time that this time can have become at the end of the path."""

    def followed_by(self, other: Summary) -> Summary:
        """The summary of this path and then the other.

        >>> Add(1).followed_by(Add(2)), IDENTITY.followed_by(Enter()), MaxPlus(1, 5).followed_by(Add(2))
        (Add(3), Enter(), MaxPlus(3, 7))
        """
        if isinstance(other, Identity):
            return self
        merged = self._merged_with(other)
        return Composition((self,)).followed_by(other) if merged is None else merged

    def is_at_most(self, other: Summary) -> bool:
        """Is this one before or equal to the other at every time? False also where that cannot be decided."""
        return self == other

    def advances(self, depth: int = 0) -> bool:
        """Is every time strictly before its result? With a depth: the first component of the first component of ...

        >>> Add(1).advances(), MaxPlus(0, 3).advances()
        (True, False)
        >>> round_of_a_loop = Componentwise(IDENTITY, Add(1))
        >>> round_of_a_loop.advances(), round_of_a_loop.advances(depth=1)
        (True, False)
        """
        return False

    def _merged_with(self, other: Summary) -> Summary | None:
        """One summary that does the work of both, if there is a simple one."""
        return None


@dataclass(frozen=True, slots=True, repr=False)
class Identity(Summary):
    """Leaves every time as it is; use IDENTITY."""

    def results_in(self, time: Time) -> Time:
        return time

    def followed_by(self, other: Summary) -> Summary:
        return other

    def is_at_most(self, other: Summary) -> bool:
        return not isinstance(other, Enter | Leave | Composition)

    def __repr__(self) -> str:
        return "IDENTITY"


IDENTITY = Identity()


@dataclass(frozen=True, slots=True, repr=False)
class Add(Summary):
    """Adds a number: t becomes t + n."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise BuildError(f"Add({self.n}) would decrease times; a summary never does, so give a number from 0 up")

    def results_in(self, time: Time) -> Time:
        return time + self.n

    def is_at_most(self, other: Summary) -> bool:
        match other:
            case Identity():
                return self.n == 0
            case Add(n):
                return self.n <= n
            case MaxPlus():
                return MaxPlus(self.n, 0).is_at_most(other)
        return False

    def advances(self, depth: int = 0) -> bool:
        return depth == 0 and self.n > 0

    def _merged_with(self, other: Summary) -> Summary | None:
        match other:
            case Add(n):
                return Add(self.n + n)
            case MaxPlus(a, b):
                return MaxPlus(self.n + a, b)
        return None

    def __repr__(self) -> str:
        return f"Add({self.n})"


@dataclass(frozen=True, slots=True, repr=False)
class MaxPlus(Summary):
    """Adds a number, and gives at least another: t becomes max(t + a, b), for times from 0 up."""

    a: int
    b: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise BuildError(f"{self!r} would decrease times; a summary never does, so give an a from 0 up")

    def results_in(self, time: Time) -> Time:
        return max(time + self.a, self.b)

    def is_at_most(self, other: Summary) -> bool:
        match other:
            case Identity():
                other = MaxPlus(0, 0)
            case Add(n):
                other = MaxPlus(n, 0)
        if not isinstance(other, MaxPlus):
            return False
        return self.a <= other.a and max(self.a, self.b) <= max(other.a, other.b)

    def advances(self, depth: int = 0) -> bool:
        return depth == 0 and self.a > 0

    def _merged_with(self, other: Summary) -> Summary | None:
        match other:
            case Add(n):
                return MaxPlus(self.a + n, self.b + n)
            case MaxPlus(a, b):
                return MaxPlus(self.a + a, max(self.b + a, b))
        return None

    def __repr__(self) -> str:
        return f"MaxPlus({self.a}, {self.b})"


class Componentwise(Summary):
    """One summary for each component of a tuple.

    >>> Componentwise(IDENTITY, Add(1)).results_in((5, 0))
    (5, 1)
    """

    __slots__ = ("parts",)

    def __init__(self, *parts: Summary) -> None:
        self.parts = parts

    def results_in(self, time: Time) -> Time:
        return tuple(part.results_in(component) for part, component in zip(self.parts, time, strict=True))

    def is_at_most(self, other: Summary) -> bool:
        if isinstance(other, Identity):
            return all(part.is_at_most(IDENTITY) for part in self.parts)
        if not isinstance(other, Componentwise) or len(other.parts) != len(self.parts):
            return False
        return all(one.is_at_most(two) for one, two in zip(self.parts, other.parts, strict=True))

    def advances(self, depth: int = 0) -> bool:
        return self.parts[0].advances(depth - 1) if depth else any(part.advances() for part in self.parts)

    def _merged_with(self, other: Summary) -> Summary | None:
        if not isinstance(other, Componentwise) or len(other.parts) != len(self.parts):
            return None
        return Componentwise(*(one.followed_by(two) for one, two in zip(self.parts, other.parts, strict=True)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Componentwise) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"Componentwise({', '.join(map(repr, self.parts))})"


class Table(Summary):
    """A table for the elements of a poset: the image of each, in the order of the poset's elements, or by element.

    >>> order = Poset("abc", [("a", "b"), ("b", "c")])
    >>> Table(order, ["b", "b", "c"]).results_in("a")
    'b'
    """

    __slots__ = ("images", "poset")

    def __init__(self, poset: Poset, images: Mapping[Time, Time] | Iterable[Time]) -> None:
        if not isinstance(images, Mapping):
            given = list(images)
            if len(given) != len(poset.elements):
                raise BuildError(
                    f"a Table has one image for each element: {len(poset.elements)} expected, {len(given)} found"
                )
            images = dict(zip(poset.elements, given, strict=True))
        if set(images) != set(poset.elements):
            raise BuildError(f"a Table has an image for each of {list(poset.elements)}, and for nothing else")
        self.poset = poset
        self.images = {element: poset.check(as_tuples(images[element])) for element in poset.elements}
        for element, image in self.images.items():
            if not poset.leq(element, image):
                raise BuildError(f"a Table may not decrease a time, but {element!r} becomes {image!r}")
        for small in poset.elements:
            for great in poset.elements:
                if poset.leq(small, great) and not poset.leq(self.images[small], self.images[great]):
                    raise BuildError(
                        f"a Table must be monotone, but {small!r} is before {great!r} and "
                        f"{self.images[small]!r} is not before {self.images[great]!r}"
                    )

    def results_in(self, time: Time) -> Time:
        return self.images[time]

    def is_at_most(self, other: Summary) -> bool:
        if isinstance(other, Identity):
            return all(element == image for element, image in self.images.items())
        if not isinstance(other, Table) or other.poset != self.poset:
            return False
        return all(self.poset.leq(image, other.images[element]) for element, image in self.images.items())

    def _merged_with(self, other: Summary) -> Summary | None:
        if not isinstance(other, Table) or other.poset != self.poset:
            return None
        return Table(self.poset, [other.images[image] for image in self.images.values()])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.poset == other.poset and self.images == other.images

    def __hash__(self) -> int:
        return hash(tuple(self.images.values()))

    def __repr__(self) -> str:
        return f"Table({self.images!r})"


@dataclass(frozen=True, slots=True)
class Enter(Summary):
    """Into a loop: t becomes (t, 0)."""

    def results_in(self, time: Time) -> Time:
        return (time, 0)

    def _merged_with(self, other: Summary) -> Summary | None:
        return IDENTITY if isinstance(other, Leave) else None


@dataclass(frozen=True, slots=True)
class Leave(Summary):
    """Out of a loop: (t, r) becomes t."""

    def results_in(self, time: Time) -> Time:
        return time[0]


@dataclass(frozen=True, slots=True)
class Composition(Summary):
    """Several summaries one after another, where no single one says the same."""

    parts: tuple[Summary, ...]

    def results_in(self, time: Time) -> Time:
        for part in self.parts:
            time = part.results_in(time)
        return time

    def advances(self, depth: int = 0) -> bool:
        crosses = any(isinstance(part, Enter | Leave) for part in self.parts)
        return not crosses and any(part.advances(depth) for part in self.parts)

    def followed_by(self, other: Summary) -> Summary:
        parts = list(self.parts)
        for part in other.parts if isinstance(other, Composition) else (other,):
            if isinstance(part, Identity):
                continue
            merged = parts[-1]._merged_with(part) if parts else part
            if merged is None:
                parts.append(part)
            elif isinstance(merged, Identity):
                parts.pop()
            elif parts:
                parts[-1] = merged
            else:
                parts.append(merged)
        if not parts:
            return IDENTITY
        return parts[0] if len(parts) == 1 else Composition(tuple(parts))
