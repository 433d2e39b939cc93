"""Every command on PATH: it hands its arguments to the server and prints what that answers. Copied, so it imports nothing of the fake."""

import json
import os
import pwd
import socket
import sys
import time

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.basename(sys.argv[0])


def main() -> int:
    """The exit code that the server says."""
    reply = ask(None)
    if reply["read"] is not None:
        reply = ask(script(reply["read"]))
    return told(reply)


def ask(text: str | None) -> dict[str, object]:
    """One request; a server that is away is told of as PBS does."""
    request = {
        "program": PROGRAM,
        "argv": sys.argv[1:],
        "folder": os.getcwd(),
        "user": pwd.getpwuid(os.getuid()).pw_name,
        "environment": dict(os.environ),
        "script": text,
    }
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(f"{FOLDER}/pbs.sock")
        except OSError:
            errors = f"Connection refused\n{PROGRAM}: cannot connect to server {server()} (errno=111)\n"
            return {"out": "", "errors": errors, "code": 111, "read": None}
        line.sendall(json.dumps(request).encode() + b"\n")
        with line.makefile("rb") as answer:
            return dict(json.loads(answer.readline()))


def script(path: object) -> str:
    """What ``qsub`` is to submit: the file, or standard input."""
    if path == "-":
        return sys.stdin.read()
    try:
        with open(str(path)) as file:
            return file.read()
    except OSError:
        sys.stderr.write("qsub: script file:: No such file or directory\n")
        sys.exit(2)


def told(reply: dict[str, object]) -> int:
    """Print it, unless the test has asked for a fault: faults/PROGRAM holds {"sleep": s, "cut": bytes, "say": text, "code": n}."""
    out, errors, code = str(reply["out"]), str(reply["errors"]), reply["code"]
    try:
        with open(f"{FOLDER}/faults/{PROGRAM}") as file:
            fault = json.load(file)
    except FileNotFoundError:
        fault = {}
    time.sleep(fault.get("sleep", 0))
    sys.stdout.write(fault.get("say", out)[: fault.get("cut")])
    sys.stderr.write(errors)
    return int(fault.get("code", code))


def server() -> str:
    """Its name."""
    with open(f"{FOLDER}/server_name") as file:
        return file.read().strip()


if __name__ == "__main__":
    sys.exit(main())
