"""The HTTP interface: what it answers, whom it refuses, and that a refusal says what to do."""

import json
import struct
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from tests.web.serving import asked, served

from ampere.core.errors import BusyError
from ampere.web.guards import HEADERS, MOST_BYTES, Allowed, Guard
from ampere.web.openapi import CALLS, description

ASKED = {"network": "cnn5", "profile": "a-sgd"}


def test_the_answers_are_those_of_the_functions(ask, answers):
    assert ask("what-if", ASKED).json == json.loads(json.dumps(answers.what_if(ASKED)))
    assert [p["id"] for p in ask("profiles").json["profiles"]] == ["a-adam", "a-sgd", "b-sgd", "broken"]
    assert "cnn5" in [n["id"] for n in ask("networks").json["networks"]]
    assert [d["title"] for d in ask("devices").json["devices"]] == ["Board a", "Board b"]
    assert ask("runs").json == {"runs": [], "running": []}
    assert ask("compare", {"networks": ["cnn5", "lenet5"], "profiles": ["a-sgd"]}).json["models"] == ["cnn5", "lenet5"]
    assert ask("profile", {"profile": "b-sgd"}).json["device"] == "Board b"
    assert ask("batch", {**ASKED, "rows": [[1, 2, 3, 4]]}).json["widths"] == ["0", "3", "6", "8"]


def test_a_network_is_uploaded_and_then_asked_for(ask, answers):
    record = answers.catalogue.network("lenet5").network.renamed("mine").to_json()
    known = ask("networks", record).json
    assert known["title"] == "mine"
    assert known["origin"] == "uploaded"
    found = ask("what-if", {"network": known["id"], "profile": "a-sgd"}).json
    same = ask("what-if", {"network": "lenet5", "profile": "a-sgd"}).json
    assert found["joules_per_iteration"] == same["joules_per_iteration"]


def test_columns_go_and_come_as_they_lie_in_memory(ask):
    rows = [(1, 2, 3, 4), (32, 64, 128, 256), (9, 9, 9, 9)]
    columns = b"".join(struct.pack("<3H", *column) for column in zip(*rows, strict=True))
    head = json.dumps({**ASKED, "dtype": "uint16"}).encode()
    found = ask("batch", head + b"\n" + columns, content_type="application/vnd.ampere.columns")
    line, _, data = found.body.partition(b"\n")
    assert json.loads(line)["rows"] == 3
    values = struct.unpack("<6f", data)
    expected = ask("batch", {**ASKED, "rows": rows}).json
    assert values == pytest.approx(expected["joules"] + expected["seconds"], rel=1e-6)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "begin with a line"),
        (b"{}\n", "network must be a name"),
        (json.dumps({**ASKED, "dtype": "object"}).encode() + b"\n", "dtype must be one of"),
        (json.dumps(ASKED).encode() + b"\n123", "columns of equal length"),
        (json.dumps(ASKED).encode() + b"\n", "columns of equal length"),
    ],
)
def test_columns_that_are_none(ask, body, said):
    found = ask("batch", body, content_type="application/vnd.ampere.columns")
    assert found.status == 422
    assert said in found.json["detail"] + found.json.get("remedy", "")


def events(body):
    parts = [part.split("\n") for part in body.decode().strip().split("\n\n")]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in parts]


def test_a_search_reports_its_progress(ask):
    found = events(ask("search", {**ASKED, "candidates": 60_000}, accept="text/event-stream").body)
    assert [kind for kind, _ in found] == ["progress", "progress", "result"]
    assert found[1][1]["share"] == pytest.approx(5 / 6)
    assert found[2][1]["candidates"] == 60_001
    [(kind, problem)] = events(ask("search", {"network": "cnn5", "profile": "x"}, accept="text/event-stream").body)
    assert (kind, problem["status"]) == ("problem", 404)


# Problem details.


@pytest.mark.parametrize(
    ("what", "body", "status", "said"),
    [
        ("what-if", {"network": "nobody", "profile": "a-sgd"}, 404, "there is no network 'nobody'"),
        ("what-if", {**ASKED, "widths": {"0": -1}}, 422, "must be a whole number"),
        ("what-if", {"network": "cnn5", "profile": "broken"}, 422, "broken.json"),
        ("what-if", b"{", 422, "not the JSON"),
        ("what-if", b"[]", 422, "must be a JSON object"),
        ("what-if", b'{"a": NaN}', 422, "not the JSON"),
        ("what-if", b'{"a": 1, "a": 2}', 422, "same key twice"),
        ("what-if", b"\xff", 422, "not the JSON"),
        ("what-if", b"[" * 100_000, 422, "nested"),
        ("what-if", {**ASKED, "allocator": [None]}, 422, "there is no allocator"),
        ("networks", {"layers": 3}, 422, "malformed"),
        ("profile", {"profile": "a-sgd", "network": {}}, 422, "network must be a name"),
        ("profile", {"profile": 3}, 422, "profile must be a name"),
        ("nothing", {}, 404, "nothing at this address"),
    ],
)
def test_a_problem_says_what_and_what_to_do(ask, what, body, status, said):
    found = ask(what, body)
    assert found.status == status
    assert found.headers["content-type"] == "application/problem+json"
    assert found.json["status"] == status
    assert said in found.json["detail"] + found.json.get("remedy", "")
    assert "Traceback" not in found.body.decode()


def test_a_wrong_method_is_told_the_right_ones(app):
    found = asked(app, "OPTIONS", "/api/v1/networks")
    assert (found.status, found.headers["allow"]) == (405, "GET, HEAD, POST")


def test_an_unexpected_error_is_a_problem_too(app, answers, monkeypatch):
    monkeypatch.setattr(answers.catalogue, "profiles", lambda: 1 / 0)
    found = asked(app, "GET", "/api/v1/profiles")
    assert found.status == 500
    assert "ZeroDivision" not in found.body.decode()


# Guards.


def test_only_its_own_names_are_served(app):
    for host in ("localhost", "127.0.0.1:8765", "[::1]:80", "LOCALHOST"):
        assert asked(app, "GET", "/api/v1/profiles", host=host).status == 200, host
    for host in ("evil.example", "127.0.0.1.evil.example", "", None, "localhost.evil.example:8765", "[::2]"):
        assert asked(app, "GET", "/api/v1/profiles", host=host).status == 421, host


def test_pages_of_others_are_refused(app):
    hostile = ("https://evil.example", "null", "file://", "http://127.0.0.1.evil.example", "http://evil.example:80")
    for origin in hostile:
        assert asked(app, "POST", "/api/v1/what-if", ASKED, origin=origin).status == 403, origin
    assert asked(app, "POST", "/api/v1/what-if", ASKED, origin="http://127.0.0.1:8765").status == 200
    assert asked(app, "GET", "/api/v1/profiles", sec_fetch_site="cross-site").status == 403
    assert asked(app, "GET", "/", sec_fetch_site="cross-site").status == 200  # a link may lead here


def test_another_port_of_this_machine_is_another_origin(app):
    guard = Guard(app.app, Allowed(port=8765))
    for origin in ("http://localhost:9", "http://localhost"):
        found = asked(guard, "POST", "/api/v1/what-if", ASKED, host="127.0.0.1:8765", origin=origin)
        assert found.status == 403, origin
    assert asked(guard, "GET", "/api/v1/profiles", host="127.0.0.1:9").status == 421


def test_off_loopback_a_token_is_needed(app):
    guard = Guard(app.app, Allowed(token="a secret that is long"))
    for shown in (None, "", "Bearer", "Bearer wrong", "Basic a secret that is long", "Bearer a secret that is long "):
        found = asked(guard, "GET", "/api/v1/profiles", authorization=shown)
        assert found.status == 401, shown
        assert "secret" not in found.body.decode()
    assert asked(guard, "GET", "/api/v1/profiles", authorization="Bearer a secret that is long").status == 200
    assert asked(guard, "GET", "/").status == 200  # the page holds no data


def test_a_body_has_a_limit(ask, app):
    assert ask("what-if", b"x" * (MOST_BYTES + 1)).status == 413
    assert asked(app, "POST", "/api/v1/what-if", b"{}", content_length="1e9").status == 413
    endless = asked(app, "POST", "/api/v1/what-if", chunks=[b"x" * 600_000, b"x" * 600_000])
    assert endless.status == 413


def test_more_than_can_wait_are_asked_to_come_back(app):
    full = Guard(app.app, Allowed(), most_waiting=0)
    found = asked(full, "GET", "/api/v1/profiles")
    assert (found.status, found.headers["retry-after"]) == (429, "1")


def test_a_queue_has_an_end(app):
    from ampere.web.routes import Queue

    queue, go = Queue("test", 2), Event()
    waiting = [queue.submit(go.wait) for _ in range(2)]
    with pytest.raises(BusyError, match="ask again"):
        queue.submit(go.wait)
    assert waiting[1].cancel()
    other = queue.submit(go.wait)
    go.set()
    assert [waiting[0].result(), other.result()] == [True, True]


def test_every_answer_forbids_what_a_page_does_not_need(app, ask):
    for found in (asked(app, "GET", "/"), ask("profiles"), ask("what-if", b"x"), asked(app, "GET", "/", host="x")):
        assert {name: found.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    "path", ["/static/../answers.py", "/static/%2e%2e/answers.py", "/static/", "/static//etc/passwd", "/etc/passwd"]
)
def test_only_the_pages_own_files_are_served(app, path):
    assert asked(app, "GET", path).status == 404


def test_the_page_and_all_that_it_loads_are_small_and_there(app):
    page = asked(app, "GET", "/").body.decode()
    assert "http:" not in page
    assert "https:" not in page
    from ampere.web.routes import STATIC

    files = [asked(app, "GET", f"/static/{path.name}") for path in STATIC.iterdir() if path.suffix != ".html"]
    assert {found.status for found in files} == {200}
    assert sum(len(found.body) for found in files) < 600_000


# The description.


def test_the_description_names_every_call(app, ask):
    routes = {(r.path, m) for r in app.app.routes if r.path.startswith("/api/") for m in r.methods - {"HEAD"}}
    described = {(path, method.upper()) for path, method, *_ in CALLS}
    assert routes - described == {("/api/v1/openapi.json", "GET"), ("/api/v1/events", "GET")}
    assert described <= routes
    assert ask("openapi.json").json == description()


def test_no_request_made_from_the_description_is_an_error_of_the_server(folder):
    """schemathesis makes requests from the description and holds answers against it."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    as_described = (checks.content_type_conformance, checks.response_schema_conformance, checks.status_code_conformance)
    with served(folder.parent) as (_, address):
        schema = schemathesis.openapi.from_url(f"{address.rstrip('/')}/api/v1/openapi.json")
        for operation in (found.ok() for found in schema.get_all_operations()):
            if not operation.path.endswith("events"):  # which has no end

                @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
                @given(case=operation.as_strategy())
                def holds(case):
                    case.call_and_validate(checks=(not_a_server_error, *as_described))

                holds()
