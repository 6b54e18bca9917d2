"""Stored profiles of devices that never were, and a server that answers from them."""

import pytest
from tests.web.serving import asked, profile_of

from ampere.web.answers import Answers
from ampere.web.catalogue import Catalogue


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Stored profiles: two devices, one of them with two optimizers, and a file that is damaged."""
    folder = tmp_path_factory.mktemp("home") / "profiles"
    profile_of("a").save(folder / "a-sgd.json")
    profile_of("a", "adam", 1.1).save(folder / "a-adam.json")
    profile_of("b", speed=3.0).save(folder / "b-sgd.json")
    (folder / "broken.json").write_text("{}")
    return folder


@pytest.fixture(scope="session")
def answers(folder):
    made = Answers(Catalogue({}, folder))
    yield made
    made.close()


@pytest.fixture(scope="session")
def app(answers):
    pytest.importorskip("starlette", reason="no starlette: pip install 'ampere-energy[web]'")
    from ampere.web.routes import application

    return application(answers)


@pytest.fixture
def ask(app):
    """`ask("what-if", {...})` posts, `ask("profiles")` gets."""

    def ask(what, body=None, **headers):
        method = "GET" if body is None else "POST"
        return asked(app, method, f"/api/v1/{what}", b"" if body is None else body, **headers)

    return ask
