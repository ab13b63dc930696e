"""How soon does the page answer? In a real browser, with the models that ship.

    python benchmarks/page_speed.py --rounds 9

Starts `dragoman serve` on a free port of this machine and opens its page in Chromium: the bytes of
a first load, the time until the languages can be chosen, and the time from the last key of a
sentence of 25 tokens until its translation stands on the screen, the page's own waiting for more
keys included. Medians; needs playwright and a Chromium of the system.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from dragoman import Translator, shipped_model

SENTENCE = (
    "Yesterday the committee decided that the old bridge over the river "
    "will be open again in the year {}."
)
TYPED = """text => new Promise(done => {
  const source = document.querySelector("#source"), target = document.querySelector("#target");
  const start = performance.now(), before = target.innerText;
  const look = () => !target.ariaBusy && target.innerText.trim() && target.innerText !== before
    ? requestAnimationFrame(() => done(performance.now() - start)) : requestAnimationFrame(look);
  source.value = text;
  source.dispatchEvent(new Event("input", { bubbles: true }));
  look();
})"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    folder = tempfile.TemporaryDirectory()
    words = [sys.executable, "-m", "dragoman", "serve", "--port", url.rpartition(":")[2]]
    words += ["--corrections", str(Path(folder.name) / "corrections.sqlite")]  # not a person's
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"{url}/health")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            _measure_loads(browser, url, given.rounds)
            _measure(browser.new_page(), url, given.rounds)
            browser.close()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
        folder.cleanup()


def _measure_loads(browser: Browser, url: str, rounds: int) -> None:
    """First loads, each by a browser that has nothing of the page; in the first of all the service
    and the browser do for the first time what they do."""
    loads = [_first_load(browser, url) for _ in range(rounds)]
    first, *others = [seconds for seconds, _ in loads]
    print(
        f"first load: {loads[0][1] / 1000:.1f} kB, usable after {first:.2f} s the first time of "
        f"all, then median {statistics.median(others):.2f} s, "
        f"{min(others):.2f} to {max(others):.2f}"
    )


def _first_load(browser: Browser, url: str) -> tuple[float, int]:
    """The seconds until the page can be used, and the bytes of what was sent."""
    context = browser.new_context()
    page = context.new_page()
    sizes: list[int] = []
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    began = time.perf_counter()
    page.goto(url)
    page.wait_for_selector("#target-language option", state="attached")
    seconds = time.perf_counter() - began
    page.wait_for_load_state("networkidle")
    context.close()
    return seconds, sum(sizes)


def _measure(page: Page, url: str, rounds: int) -> None:
    page.goto(url)
    page.wait_for_selector("#target-language option", state="attached")
    page.select_option("#source-language", "en")
    page.select_option("#target-language", "de")
    tokens = Translator.load(shipped_model("en", "de")).tokenizer.encode(
        [SENTENCE.format(2030)], "source"
    )[0]
    times = [
        float(page.evaluate(TYPED, SENTENCE.format(2030 + number))) for number in range(rounds + 1)
    ][1:]
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(
        f"{len(tokens)} tokens on screen: median {statistics.median(times):.0f} ms, "
        f"{min(times):.0f} to {max(times):.0f}"
    )


def _wait(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start within a minute")


if __name__ == "__main__":
    main()
