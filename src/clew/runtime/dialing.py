"""Dialing: a host calls the senders of its inbound channels, and calls again whenever one was lost or has moved."""

from __future__ import annotations

import threading
from collections.abc import Callable

from clew.errors import ClewError
from clew.model.names import Channel, Replica
from clew.runtime import control, server
from clew.runtime.control import Address
from clew.runtime.link import Link
from clew.runtime.loop import Loop

_FIRST_PAUSE_S = 0.02
_LAST_PAUSE_S = 1.0


class Dialer:
    """Keeps one inbound channel connected; everything but the call itself happens on the loop's thread."""

    def __init__(self, loop: Loop, channel: Channel, secret: bytes, on_up: Callable[[Link], None]) -> None:
        self.channel = channel
        self._loop = loop
        self._secret = secret
        self._on_up = on_up
        self._address: Address | None = None
        self._link: Link | None = None
        self._calls = 0
        self._pause_s = _FIRST_PAUSE_S
        self._is_ended = False

    def directed(self, directory: dict[Replica, Address]) -> None:
        """The directory says where the sender is now."""
        address = directory.get(self.channel.sender)
        if address == self._address or self._is_ended:
            return
        self._address = address
        self._pause_s = _FIRST_PAUSE_S
        self._calls += 1  # What is under way to the old address no longer counts.
        if self._link is not None:
            link, self._link = self._link, None
            link.close("the sender has moved")
        self._call()

    def end(self) -> None:
        """Calls nobody any more."""
        self._is_ended = True
        self._calls += 1
        if self._link is not None:
            self._link.close("the host ends")

    def _call(self) -> None:
        if self._address is not None and self._link is None and not self._is_ended:
            number, address = self._calls, self._address
            threading.Thread(target=self._try, args=(number, address), name="clew-dial", daemon=True).start()

    def _try(self, number: int, address: Address) -> None:
        try:
            sock = server.call((address.host, address.port), self._secret, control.dial_frame(self.channel))
        except (ClewError, OSError):
            self._loop.soon(lambda: self._again(number))
            return
        self._loop.soon(lambda: self._up(number, Link(self._loop, sock)))

    def _again(self, number: int) -> None:
        if number == self._calls and not self._is_ended:
            self._loop.after(self._pause_s, lambda: self._call() if number == self._calls else None)
            self._pause_s = min(2 * self._pause_s, _LAST_PAUSE_S)

    def _up(self, number: int, link: Link) -> None:
        if number != self._calls or self._is_ended:
            link.close("too late")
            return
        self._link = link
        self._pause_s = _FIRST_PAUSE_S
        link.on_closed = lambda reason: self._down(link)
        self._on_up(link)
        link.start()

    def _down(self, link: Link) -> None:
        if self._link is link:
            self._link = None
            self._calls += 1
            self._again(self._calls)
