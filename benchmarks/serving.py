"""The explorer by the clock: the first answer and the first picture, what-if, batches, and many clients.

    python benchmarks/serving.py [--seconds 60] [--clients 200] [--out benchmarks/results/serving.json]

The server is a process of its own, with one profile of a device that never was (26 measurements), or with --home FOLDER
the profiles stored there. Clients are threads of this process: run it on a machine with two free cores.
The first picture, and the frames while a width of a network of 1,000 layers is dragged, are timed in Chromium where
playwright and Chromium are installed. `--only frames` times nothing else.
"""

import argparse
import http.client
import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.synthetic import chain
from tests.web.serving import profile_of

from ampere.storage.networks import save_network

DEEP = 50  # layers of the network whose what-if is timed
LONGEST = 1000
PAGE = Path(__file__).parents[1] / "src" / "ampere" / "page"
WIDTHS = (32, 64, 128, 256)  # of cnn5


class Server:
    """`ampere serve` on a free port."""

    def __init__(self, home, *models):
        words = [sys.executable, "-m", "ampere", "serve", *map(str, models), "--port", "0", "--no-browser", "--json"]
        self.began = time.perf_counter()
        environment = {**os.environ, "AMPERE_HOME": str(home)}
        self.process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        text = ""
        while "}" not in text:
            text += self.process.stdout.readline()
        self.port = int(json.loads(text)["address"].rstrip("/").rpartition(":")[2])

    def ask(self, what, body, kind="application/json", connection=None):
        own = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        own.request("GET" if body is None else "POST", f"/api/v1/{what}", body, {"content-type": kind})
        response = own.getresponse()
        content = response.read()
        assert response.status == 200, content[:500]
        return content

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self):
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def quantiles(seconds):
    ordered = sorted(seconds)
    return {f"p{p}_ms": round(1e3 * ordered[int(p / 100 * (len(ordered) - 1))], 2) for p in (50, 99)}


@contextmanager
def browser_page():
    """A page of a real browser; None where there is no such browser."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None or find_spec("playwright") is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page()
        page.goto("about:blank")
        yield page
        browser.close()


def first_picture(home):
    """A server is started, and a browser that runs already opens its page."""
    with browser_page() as page:
        if page is None:
            return None
        sizes = []
        page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
        server = Server(home)
        try:
            opened = time.perf_counter()
            page.goto(f"http://127.0.0.1:{server.port}/")
            page.wait_for_selector("#layers svg")
            drawn = time.perf_counter()
            again = time.perf_counter()
            page.reload()
            page.wait_for_selector("#layers svg")
            found = {
                "seconds_from_the_command": round(drawn - server.began, 2),
                "seconds_from_the_address": round(drawn - opened, 2),
                "seconds_from_a_reload": round(time.perf_counter() - again, 2),
            }
            page_kb = sum(path.stat().st_size for path in PAGE.iterdir()) / 1e3
            return {**found, "page_kb": round(page_kb, 1), "kb_of_both_loads": round(sum(sizes) / 1e3, 1)}
        finally:
            server.process.kill()
            server.process.wait()


# The times of all frames from now on, and of all pictures of the layers that are drawn.
WATCH_FRAMES = """() => {
  window.frames_at = [];
  window.drawn_at = [];
  const tick = (time) => { window.frames_at.push(time); requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  const seen = new MutationObserver(() => window.drawn_at.push(performance.now()));
  seen.observe(document.querySelector("#layers .drawn"), { childList: true });
}"""


def frames(port, profile, network, seconds=10.0):
    """How evenly frames come while the mouse drags a slider of a long network."""
    with browser_page() as page:
        if page is None:
            return None
        page.goto(f"http://127.0.0.1:{port}/#view=explorer&network={network}&profile={profile}")
        page.wait_for_selector("#layers svg")
        box = page.locator("input[type=range]").first.bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.1 * box["width"], middle)
        page.mouse.down()
        page.evaluate(WATCH_FRAMES)
        began, moves = time.perf_counter(), 0
        while (passed := time.perf_counter() - began) < seconds:
            place = 0.5 + 0.4 * math.sin(2 * passed)
            page.mouse.move(box["x"] + place * box["width"], middle)
            moves += 1
        page.mouse.up()
        at, drawn = page.evaluate("() => [window.frames_at, window.drawn_at]")
    waits = [b - a for a, b in itertools.pairwise(at)]
    return {
        "frames_a_second": round(1e3 * len(waits) / sum(waits), 1),
        **quantiles([wait / 1e3 for wait in waits]),
        "frames_later_than_20_ms": sum(wait > 20 for wait in waits),
        "moves": moves,
        "pictures_a_second": round(len(drawn) / seconds, 1),
    }


def what_if(server, profile, network, count):
    """Every request changes every width that may change."""
    [record] = [n for n in json.loads(server.ask("networks", None))["networks"] if n["id"] == network]
    rng, waited = random.Random(0), []
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    for number in range(count + 20):
        widths = {each["name"]: rng.randint(1, each["value"]) for each in record["may_change"]["widths"]}
        body = json.dumps({"network": network, "profile": profile, "widths": widths})
        began = time.perf_counter()
        server.ask("what-if", body, connection=connection)
        if number >= 20:
            waited.append(time.perf_counter() - began)
    return {"layers": record["layers"], "widths": len(widths), **quantiles(waited)}


def batches(server, profile):
    rng = random.Random(0)
    rows = [[rng.randint(1, most) for most in WIDTHS] for _ in range(50_000)]
    asked = {"network": "cnn5", "profile": profile}
    body = json.dumps({**asked, "rows": rows}, separators=(",", ":"))
    server.ask("batch", json.dumps({**asked, "rows": rows[:1]}))  # fills the tables
    began = time.perf_counter()
    server.ask("batch", body)
    as_json = len(rows) / (time.perf_counter() - began)
    many = 120_000
    columns = b"".join(array("H", [rng.randint(1, most) for _ in range(many)]).tobytes() for most in WIDTHS)
    body = json.dumps({**asked, "dtype": "uint16"}).encode() + b"\n" + columns
    began = time.perf_counter()
    for _ in range(5):
        server.ask("batch", body, "application/vnd.ampere.columns")
    as_columns = 5 * many / (time.perf_counter() - began)
    return {"json_networks_a_second": round(as_json), "columns_networks_a_second": round(as_columns)}


def many_clients(server, profile, clients, seconds):
    before, waited, end = server.resident_mb(), [], time.monotonic() + seconds

    def client(seed):
        rng = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
        time.sleep(rng.random())
        while time.monotonic() < end:
            widths = {name: rng.randint(1, most) for name, most in zip("0368", WIDTHS, strict=True)}
            body = json.dumps({"network": "cnn5", "profile": profile, "widths": widths})
            began = time.perf_counter()
            server.ask("what-if", body, connection=connection)
            waited.append(time.perf_counter() - began)
            time.sleep(0.5 + rng.random())

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown = round(server.resident_mb() - before, 1)
    return {"clients": clients, "seconds": seconds, "answers": len(waited), **quantiles(waited), "grown_mb": grown}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", choices=["frames"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = options.home or Path(folder)
        if not options.home:
            profile_of("a").save(home / "profiles" / "a.json")
        rng, models = random.Random(1), []
        for name, depth in (("deep", DEEP), ("longest", LONGEST)):
            widths = [rng.randint(4, 64) for _ in range(depth)]
            save_network(chain(3, *widths[:-1]).renamed(name), Path(folder) / f"{name}.json")
            models.append(Path(folder) / f"{name}.json")
        server = Server(home, *models)
        try:
            profiles = json.loads(server.ask("profiles", None))["profiles"]
            profile = next(p["id"] for p in profiles if p["problem"] is None)
            server.ask("what-if", json.dumps({"network": "cnn5", "profile": profile}))
            found = {
                "first_answer_seconds": round(time.perf_counter() - server.began, 2),
                "first_answer_cpu_seconds": server.cpu_seconds(),
            }
            longest = next(
                n["id"] for n in json.loads(server.ask("networks", None))["networks"] if "longest" in n["id"]
            )
            found["frames"] = frames(server.port, profile, longest)
            if options.only:
                print(json.dumps(found["frames"], indent=2))
                return
            found["what_if"] = what_if(server, profile, "deep", 300)
            found["what_if_longest"] = what_if(server, profile, "longest", 20)
            found["batch"] = batches(server, profile)
            found["load"] = many_clients(server, profile, options.clients, options.seconds)
        finally:
            server.process.kill()
            server.process.wait()
        found["first_picture"] = first_picture(home)
    print(json.dumps(found, indent=2))
    if options.out:
        options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
