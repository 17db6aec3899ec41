"""The handshake: both ends of a connection prove that they know the secret of the run, before anything else is said.

The accepting end sends a challenge; the calling end answers it and sends one of its own. What is sent before both
proofs are in is short and of fixed length, so a stranger can neither fill memory nor say anything.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import time

from clew.errors import NotAuthentic

_MAGIC = b"clew/1\n"
_NONCE = 32
_PROOF = hashlib.sha256().digest_size
PATIENCE_S = 5.0


def prove(secret: bytes, side: bytes, theirs: bytes, ours: bytes) -> bytes:
    """The proof that one side gives, bound to both challenges."""
    return hmac.new(secret, side + theirs + ours, hashlib.sha256).digest()


def accept(connection: socket.socket, secret: bytes) -> None:
    """The accepting end; raises `NotAuthentic`, or `OSError` when the other end goes away or takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    connection.settimeout(PATIENCE_S)
    ours = secrets.token_bytes(_NONCE)
    connection.sendall(_MAGIC + ours)
    answer = exactly(connection, len(_MAGIC) + _NONCE + _PROOF, deadline)
    theirs, proof = answer[len(_MAGIC) : -_PROOF], answer[-_PROOF:]
    if not answer.startswith(_MAGIC) or not hmac.compare_digest(proof, prove(secret, b"calling", ours, theirs)):
        raise NotAuthentic("a connection did not prove that it belongs to this run; it was refused")
    connection.settimeout(PATIENCE_S)
    connection.sendall(prove(secret, b"accepting", theirs, ours))


def call(connection: socket.socket, secret: bytes) -> None:
    """The calling end; raises like `accept`."""
    deadline = time.monotonic() + PATIENCE_S
    connection.settimeout(PATIENCE_S)
    challenge = exactly(connection, len(_MAGIC) + _NONCE, deadline)
    if not challenge.startswith(_MAGIC):
        raise NotAuthentic("what was called is not part of a Clew run; the connection was closed")
    theirs, ours = challenge[len(_MAGIC) :], secrets.token_bytes(_NONCE)
    connection.sendall(_MAGIC + ours + prove(secret, b"calling", theirs, ours))
    if not hmac.compare_digest(exactly(connection, _PROOF, deadline), prove(secret, b"accepting", ours, theirs)):
        raise NotAuthentic("what was called did not prove that it belongs to this run; the connection was closed")
    connection.settimeout(PATIENCE_S)


def exactly(connection: socket.socket, count: int, deadline: float) -> bytes:
    """So many bytes, all of them in time: byte by byte a stranger could keep others out for long."""
    data = b""
    while len(data) < count:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the connection was closed before all of it had come")
        data += part
    return data
