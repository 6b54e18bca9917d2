"""A good worker with one habit spoilt: `mutant.py HABIT [ours]` passes lines on, and changes what the habit is about.

The worker in JavaScript starts quickest; ours trains more.
"""

import itertools
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HABIT = sys.argv[1]
count = itertools.count(1)
NODE = Path(__file__).parents[2] / "examples" / "node-worker" / "worker.js"
quick = shutil.which("node") and "ours" not in sys.argv
command = ["node", NODE] if quick else [sys.executable, "-m", "ampere.worker"]
worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def with_joules(result, of):
    for window in result["target"]:
        window[3] = of(window)


def answer_spoilt(answer):
    result = answer.get("result", {})
    if HABIT == "wrong-id":
        answer["id"] = 0
    if HABIT == "two-lines" and "error" in answer:
        answer["error"]["message"] += "\nand more"
    if HABIT == "own-errors" and "error" in answer:
        answer["error"]["type"] = "oops"
    if HABIT == "vague-meter" and "meter" in result:
        del result["meter"]["measured"]
    if HABIT == "changing" and "cpu" in result:
        result["cpu"] += str(time.time())
    if HABIT == "nan" and "target" in result:
        with_joules(result, lambda window: float("nan"))
    if HABIT == "too-hot" and "target" in result:
        with_joules(result, lambda window: 1e6 * window[1])
    if HABIT == "lies-sometimes" and "target" in result and next(count) % 4 == 0:
        with_joules(result, lambda window: 1e6 * window[1])
    if HABIT == "same-price" and "target" in result:
        with_joules(result, lambda window: 0.01 * window[0])
    if HABIT == "untrained" and "loss" in result:
        result["loss"] = [1.0, 1.0]
    return answer


def line_spoilt(line):
    if HABIT == "answers-empty-lines" and line == b"\n":
        return b"garbage\n"
    if HABIT == "any-version" and b'"protocols"' in line:
        request = json.loads(line)
        request["protocols"] = [3]
        return json.dumps(request).encode() + b"\n"
    if HABIT == "fragile" and b"garbage" in line:
        sys.exit(1)
    return line


def pass_answers():
    for line in worker.stdout:
        if line == b"\n":
            if HABIT == "breathless":
                continue
            out = line
        else:
            out = json.dumps(answer_spoilt(json.loads(line))).encode() + b"\n"
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()


threading.Thread(target=pass_answers, daemon=True).start()
for request in sys.stdin.buffer:
    worker.stdin.write(line_spoilt(request))
    worker.stdin.flush()
if HABIT == "clinging":
    time.sleep(60)
