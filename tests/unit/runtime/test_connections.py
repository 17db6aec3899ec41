"""Handshakes, servers and links over real sockets: who is let in, and that nothing is lost when a socket is slow."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clew.errors import NotAuthentic
from clew.runtime import handshake, server
from clew.runtime.control import message
from clew.runtime.frames import frame
from clew.runtime.link import Link
from clew.runtime.loop import Loop
from clew.runtime.server import Server

SECRET, OTHER = b"s" * 32, b"o" * 32


def wait_until(what: str, condition: Callable[[], Any], limit_s: float = 30.0) -> Any:
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"it was not seen that {what}"
        time.sleep(0.002)
    return found


@pytest.fixture
def loop() -> Iterator[Loop]:
    errors: list[BaseException] = []
    made = Loop("test", errors.append)
    made.start()
    yield made
    made.end()
    assert not errors


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    yield one, other
    one.close()
    other.close()


# Handshakes


def shake(
    pair: tuple[socket.socket, socket.socket], accepting: bytes, calling: bytes
) -> tuple[list[BaseException], list[BaseException]]:
    """The errors of the accepting and of the calling end."""
    errors: tuple[list[BaseException], list[BaseException]] = ([], [])

    def end(side: int, act: Callable[[socket.socket, bytes], None], secret: bytes) -> None:
        try:
            act(pair[side], secret)
        except (NotAuthentic, OSError) as error:
            errors[side].append(error)
            pair[side].close()

    threads = [
        threading.Thread(target=end, args=(0, handshake.accept, accepting)),
        threading.Thread(target=end, args=(1, handshake.call, calling)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return errors


def test_who_knows_the_secret_is_let_in(pair: tuple[socket.socket, socket.socket]) -> None:
    assert shake(pair, SECRET, SECRET) == ([], [])


def test_who_does_not_know_it_is_not(pair: tuple[socket.socket, socket.socket]) -> None:
    accepting, calling = shake(pair, SECRET, OTHER)
    assert "did not prove that it belongs to this run" in str(accepting[0])
    assert isinstance(calling[0], ConnectionError)


def test_a_caller_hears_when_it_called_the_wrong_one(pair: tuple[socket.socket, socket.socket]) -> None:
    """Someone who repeats our own proof to us does not know the secret either."""
    mirror, caller = pair

    def reflect() -> None:
        mirror.sendall(b"clew/1\n" + bytes(32))
        answer = b""
        while len(answer) < 7 + 32 + 32:
            answer += mirror.recv(1024)
        mirror.sendall(answer[-32:])

    thread = threading.Thread(target=reflect)
    thread.start()
    with pytest.raises(NotAuthentic, match="did not prove that it belongs to this run"):
        handshake.call(caller, SECRET)
    thread.join()


def test_a_caller_of_something_else(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(b"HTTP/1.1 400 Bad Request, and so on and on and on")
    with pytest.raises(NotAuthentic, match="is not part of a Clew run"):
        handshake.call(pair[1], SECRET)


def test_someone_silent_is_given_up(pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "PATIENCE_S", 0.05)
    with pytest.raises(TimeoutError):
        handshake.accept(pair[0], SECRET)


# Servers


@pytest.fixture
def entered() -> list[tuple[int, bytes]]:
    return []


@pytest.fixture
def listening(loop: Loop, entered: list[tuple[int, bytes]]) -> Iterator[Server]:
    sockets: list[socket.socket] = []

    def enter(connection: socket.socket, kind: int, payload: bytes) -> None:
        sockets.append(connection)
        entered.append((kind, payload))

    made = Server(loop, "127.0.0.1", SECRET, enter)
    made.start()
    yield made
    loop.soon(made.close)
    for each in sockets:
        each.close()


def test_a_server_takes_those_of_the_run_and_counts_the_others(
    listening: Server, entered: list[tuple[int, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "PATIENCE_S", 0.2)
    address = ("127.0.0.1", listening.port)
    with socket.create_connection(address) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(200))
        wait_until("garbage is refused", lambda: listening.refused == 1)
    with socket.create_connection(address):
        wait_until("silence is refused", lambda: listening.refused == 2)
    with contextlib.suppress(NotAuthentic, OSError):
        server.call(address, OTHER, b"")
    wait_until("a wrong secret is refused", lambda: listening.refused == 3)
    with server.call(address, SECRET, frame(1, b"")[:3]):
        wait_until("half a frame is refused", lambda: listening.refused == 4)
    with server.call(address, SECRET, (1 << 30).to_bytes(4, "big") + b"\1"):
        wait_until("a huge first frame is refused", lambda: listening.refused == 5)
    assert entered == []
    with server.call(address, SECRET, message("register")):
        wait_until("one of the run is let in", lambda: entered)
    assert listening.refused == 5


# Links


class Ends:
    """Two links over a pair of sockets, the first of which sends little at a time."""

    def __init__(self, loop: Loop, pair: tuple[socket.socket, socket.socket]) -> None:
        pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.heard: list[tuple[int, bytes]] = []
        self.closed: list[str] = []
        self.sending, self.hearing = Link(loop, pair[0]), Link(loop, pair[1])
        self.hearing.on_frame = lambda kind, payload: self.heard.append((kind, payload))
        self.hearing.on_closed = self.closed.append
        self.loop = loop

    def start(self) -> None:
        self.loop.soon(self.sending.start)
        self.loop.soon(self.hearing.start)


@pytest.fixture
def ends(loop: Loop, pair: tuple[socket.socket, socket.socket]) -> Ends:
    return Ends(loop, pair)


def test_a_link_loses_nothing_when_the_other_end_is_slow(ends: Ends) -> None:
    """Several threads send while nobody reads; each one's frames arrive whole and in its order."""
    frames, threads = 200, 4

    def send(kind: int) -> None:
        for number in range(frames):
            ends.sending.send(frame(kind, number.to_bytes(4, "big") + bytes(number * 37 % 9000)))

    senders = [threading.Thread(target=send, args=(kind,)) for kind in range(threads)]
    ends.loop.soon(ends.sending.start)
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    ends.loop.soon(ends.hearing.start)
    wait_until("all is heard", lambda: len(ends.heard) == frames * threads)
    for kind in range(threads):
        own = [payload for of, payload in ends.heard if of == kind]
        assert [int.from_bytes(payload[:4], "big") for payload in own] == list(range(frames))
        assert [len(payload) - 4 for payload in own] == [number * 37 % 9000 for number in range(frames)]
    assert ends.sending.bytes_out == ends.hearing.bytes_in


def test_frames_larger_than_what_a_socket_takes(ends: Ends) -> None:
    ends.start()
    for number in range(5):
        ends.sending.send(frame(number, bytes([number]) * 1_000_000))
    wait_until("all is heard", lambda: len(ends.heard) == 5)
    assert ends.heard == [(number, bytes([number]) * 1_000_000) for number in range(5)]


def test_an_end_that_closes_is_heard(ends: Ends) -> None:
    ends.start()
    ends.loop.soon(lambda: ends.sending.close())
    wait_until("it is closed", lambda: ends.closed)
    assert ends.closed == ["the other end closed it"]
    assert ends.hearing.is_closed
    ends.hearing.send(frame(1, b"too late"))  # Nothing happens.


def test_a_bad_frame_closes_the_link(ends: Ends) -> None:
    ends.start()
    ends.sending.send(b"\xff" * 100)
    wait_until("it is closed", lambda: ends.closed)
    assert "refused: a frame of 4294967295 bytes was announced" in ends.closed[0]
