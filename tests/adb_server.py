"""An imitated adb server with one phone: adb's own host protocol over TCP, and a battery that follows a process.

    python adb_server.py STATE      prints its port; STATE is a file of JSON that tells what the phone does just now

What the phone says is worded as Android's BatteryService words it, written by hand. No phone was asked.
"""

import json
import socketserver
import sys
import time
from pathlib import Path

SERIAL, MODEL, VOLTS = "IMITATED01", "Imitated 5", 3.987
DUMPSYS = """Current Battery Service state:{stopped}
  AC powered: false
  USB powered: {usb}
  Wireless powered: false
  Dock powered: false
  Max charging current: 0
  Max charging voltage: 0
  Charge counter: 2345000
  status: {status}
  health: 2
  present: true
  level: 71
  scale: 100
  voltage: 3987
  temperature: 271
  technology: Li-ion
"""
USUAL = {
    "state": "device",
    "usb": "false",
    "status": 3,
    "stopped": "",
    "sysfs": True,
    "pid": None,
    "idle": 1.0,
    "busy": 3.0,
    "unit": 1e6,  # of the current: uA
}


class Phone:
    def __init__(self, path):
        self.path, self.last = path, (time.monotonic(), 0.0)

    def state(self):
        return {**USUAL, **json.loads(self.path.read_text() or "{}")}

    def said(self, command):
        if command.startswith("getprop"):
            return MODEL + "\n"
        state = self.state()
        current = round(-self.watts(state) / VOLTS * state["unit"]) if state["sysfs"] else ""
        return DUMPSYS.format(**state) + f"current_now: {current}\nvoltage_now: {round(VOLTS * 1e6)}\n"

    def watts(self, state):
        """At rest, and more for the CPU seconds of a process, since it was asked last."""
        now, work = time.monotonic(), cpu_seconds(state["pid"])
        (was, worked), self.last = self.last, (now, work)
        return state["idle"] + state["busy"] * max(0.0, work - worked) / max(now - was, 1e-3)


def cpu_seconds(pid):
    """Of a process and its children: a worker lets others train."""
    try:
        spent = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9
        threads = Path(f"/proc/{pid}/task").glob("*/children")
        return spent + sum(cpu_seconds(child) for path in threads for child in path.read_text().split())
    except (OSError, IndexError):
        return 0.0


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        while asked := self.rfile.read(4):
            command = self.rfile.read(int(asked, 16)).decode()
            if command == "host:version":
                self.answer(self.block("0029"))
            elif command in ("host:devices", "host:devices-l"):
                self.answer(self.block(f"{SERIAL}\t{self.server.phone.state()['state']}\n"))
            elif command == f"host:tport:serial:{SERIAL}":
                self.answer(bytes(8))
            elif command.startswith("shell"):
                return self.answer(self.server.phone.said(command.partition(":")[2]).encode())
            else:
                return self.wfile.write(b"FAIL" + self.block(f"unknown host service {command}"))
        return None

    def answer(self, data):
        self.wfile.write(b"OKAY" + data)

    @staticmethod
    def block(text):
        return f"{len(text):04x}{text}".encode()


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Connection) as server:
        server.phone = Phone(Path(sys.argv[1]))
        print(server.server_address[1], flush=True)
        server.serve_forever()
