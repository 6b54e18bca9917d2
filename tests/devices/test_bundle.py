"""What travels: small, the same each time, and enough to build every model of ours by itself."""

import io
import subprocess
import sys
import zipfile

from ampere.devices.bundle import bundle
from ampere.models import SPACES

MOST_BYTES = 300_000


def test_it_is_small_and_always_the_same():
    assert len(bundle()) < MOST_BYTES
    again = bundle.__wrapped__()
    assert again == bundle()


def test_only_what_runs_there_travels():
    names = zipfile.ZipFile(io.BytesIO(bundle())).namelist()
    assert {name.split("/")[1] for name in names if "/" in name} == {
        "__init__.py",
        "core",
        "meters",
        "models",
        "runtimes",
        "worker",
    }
    assert all(name.endswith(".py") for name in names)


def test_every_model_of_ours_is_found_in_it_alone(tmp_path):
    (tmp_path / "ampere.zip").write_bytes(bundle())
    factories = [space.factory for space in SPACES.values()]
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'ampere.zip')!r})\n"
        "from ampere.runtimes.user_code import find_factory\n"
        f"assert all('ampere.zip' in find_factory(f).__code__.co_filename for f in {factories!r})\n"
        "assert 'ampere.models.loading' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
