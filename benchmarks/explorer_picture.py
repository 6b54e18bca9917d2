"""The explorer as pictures: every view on a desk and on a phone, in light and dark, from the profiles in a folder.

    python benchmarks/explorer_picture.py --home FOLDER [--out docs/images/explorer.png] [--profile ID] [--all FOLDER]

`--out` is the one of the README; `--all` writes all of them there, to be looked at. Needs Chromium and playwright.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESK, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
EXPLORER = "view=explorer&network=cnn5&w.0=24&w.6=96&w.8=160&iterations=18000&battery=15Wh&grid=400"
READY = {
    "explorer": "() => /\\d/.test(document.querySelector('.headline')?.innerText)",
    "compare": "() => document.querySelector('#heat svg')",
    "pareto": "() => document.querySelector('#pareto svg')",
    "profile": "() => document.querySelector('.cards dd')",
    "runs": "() => !document.querySelector('main').innerText.includes('Loading')",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("docs/images/explorer.png"))
    parser.add_argument("--profile", default="", help="of the README's picture")
    parser.add_argument("--all", type=Path)
    options = parser.parse_args()
    words = [sys.executable, "-m", "ampere", "serve", "--port", "0", "--no-browser", "--json"]
    environment = {**os.environ, "AMPERE_HOME": str(options.home)}
    server = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    text = ""
    while "}" not in text:
        text += server.stdout.readline()
    address = json.loads(text)["address"]
    root = hasattr(os, "getuid") and os.getuid() == 0  # Chromium's sandbox refuses to run as root
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if root else [])
            picture(
                browser,
                f"{address}#{EXPLORER}&profile={options.profile}",
                "explorer",
                DESK,
                "light",
                options.out,
                full=False,
            )
            for view in READY if options.all else ():
                for size, viewport in (("desk", DESK), ("phone", PHONE)):
                    for scheme in ("light", "dark"):
                        state = EXPLORER if view == "explorer" else f"view={view}&network=cnn5"
                        path = options.all / f"{view}-{size}-{scheme}.png"
                        picture(browser, f"{address}#{state}", view, viewport, scheme, path)
            browser.close()
    finally:
        server.kill()
        server.wait()


def picture(browser, address, view, viewport, scheme, path, full=True):
    path.parent.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(viewport=viewport, color_scheme=scheme, device_scale_factor=1.5)
    page = context.new_page()
    page.on("console", lambda message: print(f"{view}: {message.text}", file=sys.stderr))
    page.on("pageerror", lambda error: print(f"{view}: {error}", file=sys.stderr))
    page.goto(address)
    page.wait_for_function(READY[view], timeout=60_000)
    page.wait_for_timeout(4000 if view == "explorer" else 500)  # memory comes last
    page.screenshot(path=path, full_page=full)
    context.close()


if __name__ == "__main__":
    main()
