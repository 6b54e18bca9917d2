"""The HTTP interface: /api/v1, and the page that uses it."""

from __future__ import annotations

import asyncio
import json
import os
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from threading import Semaphore
from typing import Any, TypeVar

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from ampere.core.errors import AmpereError, BusyError, UsageError
from ampere.storage import files

from .answers import Answers, columns_in
from .guards import Allowed, App, Guard
from .openapi import description
from .problems import problem_body, problem_of, unexpected
from .profiles import devices, profile_detail, running, runs

STATIC = Path(__file__).parents[1] / "page"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
COLUMNS = "application/vnd.ampere.columns"
WATCH_SECONDS = 1.0
MOST_QUICK, MOST_LONG = 300, 24  # requests that wait

Record = dict[str, Any]
T = TypeVar("T")


class Queue:
    """One thread that answers one request after the other, and how many may wait for it."""

    def __init__(self, name: str, most: int) -> None:
        self._thread, self._free = ThreadPoolExecutor(1, name), Semaphore(most)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Work for the thread; BusyError where too much of it waits."""
        if not self._free.acquire(blocking=False):
            raise BusyError("too many requests like this wait to be answered: ask again in a second")
        future = self._thread.submit(work)
        future.add_done_callback(lambda _: self._free.release())  # also where a client left before its turn
        return future


class Api:
    """Quick requests wait in one queue, searches, batches and whatever else takes long in another."""

    def __init__(self, answers: Answers) -> None:
        self.answers, self.catalogue = answers, answers.catalogue
        self._quick, self._long = Queue("quick", MOST_QUICK), Queue("long", MOST_LONG)

    def routes(self) -> list[Route]:
        quick, long = self._quick, self._long
        post = partial(self._posted, quick)
        return [
            self._got("/api/v1/devices", lambda: {"devices": devices(self.catalogue)}),
            self._got("/api/v1/profiles", self._profiles),
            self._got("/api/v1/networks", lambda: {"networks": self.catalogue.networks()}),
            self._got(
                "/api/v1/runs", lambda: {"runs": runs(self.catalogue), "running": running(self.catalogue.folder)}
            ),
            self._got("/api/v1/openapi.json", description),
            post("/api/v1/networks", self._upload),
            post("/api/v1/estimate", self.answers.estimate),
            post("/api/v1/what-if", self.answers.what_if),
            post("/api/v1/compare", self.answers.compare),
            self._posted(long, "/api/v1/profile", partial(profile_detail, self.catalogue)),
            self._posted(long, "/api/v1/memory", self.answers.memory),
            Route("/api/v1/network-file", self._network_file, methods=["POST"]),
            Route("/api/v1/batch", self._batch, methods=["POST"]),
            Route("/api/v1/search", self._search, methods=["POST"]),
            Route("/api/v1/events", self._events, methods=["GET"]),
        ]

    def _profiles(self) -> Record:
        return {"profiles": self.catalogue.profiles(), "memory_followed": find_spec("torch") is not None}

    def _upload(self, asked: Record) -> Record:
        return self.catalogue.record(self.catalogue.upload(asked))

    def _got(self, path: str, answer: Callable[[], Record]) -> Route:
        async def endpoint(request: Request) -> Response:
            return await self._answered(self._quick, answer)

        return Route(path, endpoint, methods=["GET"])

    def _posted(self, queue: Queue, path: str, answer: Callable[[Record], Record]) -> Route:
        async def endpoint(request: Request) -> Response:
            body = await request.body()
            return await self._answered(queue, lambda: answer(record_in(body)))

        return Route(path, endpoint, methods=["POST"])

    async def _answered(self, queue: Queue, answer: Callable[[], Record]) -> Response:
        return await self._in(queue, lambda: Response(as_json(answer()), media_type="application/json"))

    async def _in(self, queue: Queue, answer: Callable[[], Response]) -> Response:
        try:
            return await asyncio.wrap_future(queue.submit(lambda: responding(answer)))
        except BusyError as error:
            return problem(error)

    async def _network_file(self, request: Request) -> Response:
        body = await request.body()
        named = {"content-disposition": 'attachment; filename="network.json"'}
        return await self._in(
            self._quick,
            lambda: Response(self.answers.network_file(record_in(body)), media_type="application/json", headers=named),
        )

    async def _batch(self, request: Request) -> Response:
        body, kind = await request.body(), request.headers.get("content-type", "")
        if kind.split(";")[0] == COLUMNS:
            return await self._in(self._long, lambda: self._columns(body))
        return await self._answered(self._long, lambda: self.answers.batch(record_in(body)))

    def _columns(self, body: bytes) -> Response:
        """A line of JSON, then columns of widths; the answer is a line of JSON, then joules and seconds."""
        line, newline, _ = body.partition(b"\n")
        if not newline:
            raise UsageError("the body must begin with a line of JSON: network, profile and dtype")
        asked = record_in(line)
        bulk = self.answers.bulk(asked)
        widths = columns_in(body, len(line) + 1, len(bulk.names), str(asked.get("dtype", "uint16")))
        costs = bulk.costs(widths)
        head = {"rows": len(widths), "columns": ["joules", "seconds"], "dtype": "float32"}
        data = b"".join(values.astype("<f4").tobytes() for values in costs)
        return Response(as_json(head) + b"\n" + data, media_type=COLUMNS)

    async def _search(self, request: Request) -> Response:
        body = await request.body()
        if "text/event-stream" not in request.headers.get("accept", ""):
            return await self._answered(self._long, lambda: self.answers.search(record_in(body)))
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()

        def tell(kind: str, data: bytes) -> None:
            loop.call_soon_threadsafe(events.put_nowait, (kind, data))

        def searching() -> None:
            def report(done: float, words: str) -> None:
                tell("progress", as_json({"share": done, "words": words}))

            found = responding(lambda: Response(as_json(self.answers.search(record_in(body), report))))
            tell("result" if found.status_code == 200 else "problem", bytes(found.body))

        async def stream() -> AsyncIterator[bytes]:
            kind = ""
            while kind not in ("result", "problem"):
                kind, data = await events.get()
                yield event(kind, data)

        try:
            self._long.submit(searching)
        except BusyError as error:
            return problem(error)
        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _events(self, request: Request) -> Response:
        """Says when a stored profile changed (it was extended, or a run was recorded), and how far runs are."""

        async def stream() -> AsyncIterator[bytes]:
            before: Any = None
            were: list[Record] = []
            while not await request.is_disconnected():
                now = await asyncio.to_thread(_states, self.catalogue.folder)
                if now != before:
                    changed = sorted(name for name in now if before and before.get(name) != now[name])
                    yield event("hello" if before is None else "changed", as_json({"profiles": changed}))
                    before = now
                if (going := await asyncio.to_thread(running, self.catalogue.folder)) != were:
                    yield event("running", as_json({"running": going}))
                    were = going
                await asyncio.sleep(WATCH_SECONDS)

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})


def _states(folder: Path) -> dict[str, tuple[int, int]]:
    paths = folder.glob("*.json") if folder.is_dir() else ()
    return {path.stem: (path.stat().st_mtime_ns, path.stat().st_size) for path in paths if path.exists()}


def event(kind: str, data: bytes) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def as_json(record: Any) -> bytes:
    return json.dumps(record, allow_nan=False, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no JSON")


def record_in(body: bytes) -> Record:
    """The JSON object of a body; UsageError where it is none."""
    try:
        record = files.loads(body.decode("utf-8"))
    except ValueError as error:
        raise UsageError(f"the body is not the JSON that is expected here ({error!s:.100}): send an object") from None
    if not isinstance(record, dict):
        raise UsageError("the body must be a JSON object: send {...}")
    return record


def responding(answer: Callable[[], Response]) -> Response:
    """The answer, or the problem that it met."""
    try:
        return answer()
    except AmpereError as error:
        return problem(error)
    except Exception:
        if os.environ.get("AMPERE_DEBUG"):
            traceback.print_exc()
        return as_response(*unexpected())


def problem(error: AmpereError) -> Response:
    return as_response(*problem_of(error))


def as_response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    more = {"retry-after": "1"} if status == 429 else {}
    return Response(body, status, headers={**(headers or {}), **more}, media_type="application/problem+json")


def page(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        path = STATIC / name
        return FileResponse(path, media_type=TYPES[path.suffix], headers={"cache-control": "no-cache"})

    return endpoint


async def _refused(request: Request, error: Any) -> Response:
    status = int(getattr(error, "status_code", 500))
    words = {404: "there is nothing at this address", 405: "this address takes another method"}
    body = problem_body(status, str(getattr(error, "detail", "error")), words.get(status, "the request failed"))
    return as_response(status, body, getattr(error, "headers", None))


def application(answers: Answers, allowed: Allowed | None = None) -> App:
    """The whole server, as an ASGI application."""
    files_ = {path.name for path in STATIC.iterdir() if path.suffix in TYPES}
    routes = [*Api(answers).routes(), Route("/", page("index.html"))]
    methods: dict[str, set[str]] = {}
    for route in routes:
        methods.setdefault(route.path, set()).update(route.methods or ())
    routes += [Route(f"/static/{name}", page(name)) for name in sorted(files_)]

    async def refused(request: Request, error: Any) -> Response:
        response = await _refused(request, error)
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            response.headers["allow"] = ", ".join(sorted(methods.get(request.url.path, ())))
        return response

    app = Starlette(routes=routes, exception_handlers=dict.fromkeys((404, 405, 500), refused))
    return Guard(app, allowed or Allowed())
