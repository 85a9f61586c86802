"""Who may speak to the viewer: the page that it served, and no page of others that is open in the same browser.

A browser lets any page open a websocket to this machine, and says only where the page came from. viser has no setting for
that, so its server is made with a question before the others: it is asked of every request that has an Origin.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ..model.errors import InputError

_patching = threading.Lock()


def is_ours(origin: str, asked: str, host: str) -> bool:
    """Whether a page from `origin` may speak to the server that it asked for as `asked` (the Host header).

    Both must be the same, and must be this machine by number or by a name that nobody else can give it: a stranger's name may
    be made to point here after his page was loaded."""
    try:
        page = urlsplit(origin)
        name = page.hostname or ""
    except ValueError:
        return False
    if page.scheme not in ("http", "https") or page.netloc.lower() != asked.lower():
        return False
    return name in ("localhost", host.lower(), socket.gethostname().lower()) or _is_number(name)


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def only_our_pages(host: str) -> Iterator[None]:
    """A websocket server that is begun inside refuses pages of others, before a single message is read."""
    from websockets.asyncio import server

    begin, begun = server.serve, []

    def guarded(*given: Any, process_request: Any = None, **options: Any) -> Any:
        def ask(connection: Any, request: Any) -> Any:
            asked = request.headers.get_all("Host")
            if not all(len(asked) == 1 and is_ours(o, asked[0], host) for o in request.headers.get_all("Origin")):
                return connection.respond(403, "this page may not speak to the viewer\n")
            return process_request(connection, request) if process_request else None

        begun.append(True)
        return begin(*given, process_request=ask, **options)

    with _patching:
        server.serve = guarded  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            server.serve = begin  # type: ignore[misc]
    if not begun:
        raise InputError(
            "this version of viser begins its server in another way, so that pages of others cannot be refused"
        )
