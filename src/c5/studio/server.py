"""The page's server: HTTP in, `Session` asked, JSON and pictures out. It listens only on the loopback address.

Every address begins with a token that is new each time the program starts, so that no other page, program or user of
the machine can ask for anything; there is no cookie that a browser could send by itself. Host and Origin must be the
server's own, so that neither a foreign name for this address nor a foreign page gets through. Photographs are named by
ids and never by paths.

| address below the token | answer |
|---|---|
| GET / and static/NAME | the page |
| GET shoot?since=NUMBER | what is newer than a number: `Session.tell` |
| GET thumbnail/ID?before=1 | a JPEG; 404 while there is none |
| GET pixels/ID, develop/ID, plane/ID | linear pixels, lights and matrices, the camera's table |
| GET why/ID | what the estimate is based on, a PNG |
| POST act | a decision: an event of `c5.studio.decisions`, and the number that was seen |
| POST measure | the light of a gray patch |
| POST plan, write | what would be written; write that |
| POST again | look at the folder again |

An error is a JSON object with one line, `error`: 400 for what cannot be done, 404, 409 where another tab was faster.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from c5.color import as_illuminant
from c5.errors import C5Error, ParameterError
from c5.io.files import printable
from c5.studio.session import Session
from c5.studio.shoot import ConflictError, GoneError

HOST = "127.0.0.1"
MOST_BYTES = 1 << 20
"""Limit of a request: the ids of 50,000 photographs fit."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
ALWAYS, NEVER = {"Cache-Control": "private, max-age=604800, immutable"}, {"Cache-Control": "no-store"}


class Guard:
    """Lets through what comes from the page itself, and ensures that nobody keeps or frames what goes out."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *ours]
            await send(message)

        refusal = self._refuse(Request(scope))
        await (self._app if refusal is None else refusal)(scope, receive, send_with_headers)

    def _refuse(self, request: Request) -> Response | None:
        """The answer to a request that is not served."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        server = request.scope.get("server") or (HOST, 0)
        if host not in {f"{name}:{server[1]}" for name in (HOST, "localhost")}:
            return _error(403, "this address is not the studio's; use the one that was printed at the start")
        is_foreign = (origin is None and request.method == "POST") or origin not in (None, f"http://{host}")
        if is_foreign or request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _error(403, "the request is from another page; the studio answers only its own")
        token = request.url.path.lstrip("/").partition("/")[0]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return _error(403, "the address has no valid token; use the one that was printed at the start")
        if request.method == "POST":
            if request.headers.get("content-type") != "application/json":
                return _error(415, "decisions are JSON")
            length = request.headers.get("content-length", "")
            if not length.isdecimal():
                return _error(411, "a request must state its length")
            if int(length) > MOST_BYTES:
                return _error(413, "the request is too large")
        return None


def _error(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status, headers=NEVER)


def make_app(session: Session, token: str) -> ASGIApp:
    """The application that serves one shoot."""

    async def shoot(request: Request) -> Response:
        since = _integer(request.query_params.get("since", "0"))
        return JSONResponse(await run_in_threadpool(session.tell, since), headers=NEVER)

    async def thumbnail(request: Request) -> Response:
        before = "before" in request.query_params
        data = await run_in_threadpool(session.pictures.thumbnail, request.path_params["id"], before=before)
        if data is None:
            return _error(404, "there is no thumbnail yet")
        return Response(data, media_type="image/jpeg", headers=ALWAYS if "v" in request.query_params else NEVER)

    def serve(find: Callable[[str], bytes], kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return Response(await run_in_threadpool(find, request.path_params["id"]), media_type=kind, headers=NEVER)

        return answer

    async def develop(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(session.pictures.develop, request.path_params["id"]), headers=NEVER)

    def decide(do: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            wish = await _read_json(request)
            told = await run_in_threadpool(do, wish)
            if told is None:
                told = await run_in_threadpool(session.tell, _integer(wish.get("seen", 0)))
            return JSONResponse(told, headers=NEVER)

        return answer

    def act(wish: dict[str, Any]) -> None:
        session.act(_dictionary(wish.get("event")), _integer(wish.get("seen", 0)))

    def measure(wish: dict[str, Any]) -> dict[str, Any]:
        return {"light": as_illuminant(session.shoot.measure(str(wish.get("id")), _box(wish.get("box")))).tolist()}

    def plan(wish: dict[str, Any]) -> None:
        names, which = wish.get("outputs", []), str(wish.get("which", "all"))
        session.plan([str(name) for name in names], which, replace_custom=wish.get("replace") is True)

    def write(wish: dict[str, Any]) -> None:
        session.write(str(wish.get("plan")))

    def again(wish: dict[str, Any]) -> None:
        session.look_again()

    names = [each.name for each in resources.files("c5.studio").joinpath("static").iterdir()]
    pages = {name: resources.files("c5.studio").joinpath("static", name).read_bytes() for name in names}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in pages:
            return JSONResponse({"error": "there is no such page"}, 404)
        return Response(pages[name], media_type=KINDS[name[name.rindex(".") :]], headers=NEVER)

    decisions = {"act": act, "measure": measure, "plan": plan, "write": write, "again": again}
    routes = [
        Route("/", page),
        Route("/static/{name}", page),
        Route("/shoot", shoot),
        Route("/thumbnail/{id}", thumbnail),
        Route("/pixels/{id}", serve(session.pictures.preview, "application/octet-stream")),
        Route("/plane/{id}", serve(session.pictures.plane, "application/octet-stream")),
        Route("/why/{id}", serve(session.pictures.explain, "image/png")),
        Route("/develop/{id}", develop),
        *(Route(f"/{name}", decide(do), methods=["POST"]) for name, do in decisions.items()),
    ]
    app = Starlette(routes=[Mount(f"/{token}", routes=routes)], exception_handlers={C5Error: _explain})
    return Guard(app, token)


async def _explain(request: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, GoneError) else 409 if isinstance(error, ConflictError) else 400
    return _error(status, printable(error))


async def _read_json(request: Request) -> dict[str, Any]:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:  # whatever length it declared
            raise ParameterError("the request is too large")
    try:
        return _dictionary(json.loads(data))
    except (ValueError, RecursionError):
        raise ParameterError("the request is not JSON") from None


def _dictionary(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ParameterError("the request is not a decision")
    return value


def _integer(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ParameterError("a number is needed") from None


def _box(value: object) -> list[int]:
    if not isinstance(value, list) or len(value) != 4:
        raise ParameterError("a rectangle needs four numbers")
    return [_integer(number) for number in value]


def listen(port: int = 0) -> socket.socket:
    """A socket on the loopback address, at a port that is free if none is named."""
    try:
        return socket.create_server((HOST, port), backlog=128)  # connections wait until the server is ready
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error  # its own message repeats the address
        raise ParameterError(f"port {port}: {reason}; choose another") from None


def serve(session: Session, listener: socket.socket, token: str) -> None:
    """Serve a shoot until the program is interrupted."""
    import uvicorn

    config = uvicorn.Config(make_app(session, token), log_level="error", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])
