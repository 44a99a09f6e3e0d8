#!/usr/bin/env python3
"""Sends a live node what its own OpenAPI document says, and what it does not.

Starts an authority of a committee without a Primary, whose accounts have something and have paid nothing, and lets
Schemathesis make requests from the document that the node serves: of each operation well-formed ones, ill-formed ones,
edge cases, chains of operations. No answer may be a server error other than the documented 503, and none may be one that
the document does not describe. The stream of events is left out: it does not end (node/tests/node/http_events.rs).
The same requests come each time, as many as there is time for; SEED=… asks for others, API_SECONDS=… takes longer.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The accounts of the beginning.
ACCOUNTS = ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"]
# Nothing here takes this long, however busy the machine is.
PATIENCE_SECONDS = 60
SECONDS_MAX = int(os.environ.get("API_SECONDS", "40"))


def free_ports():
    """Two ports that are free just now: one shard's and HTTP's."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def set_up(node, folder):
    """An authority, with the keys of three others. Says where its HTTP port is."""
    members = []
    for number in range(4):
        made = subprocess.run([node, "keygen", "--plain", "--keys", folder / f"keys-{number}"], check=True,
                              capture_output=True, text=True)
        members.append(json.loads(made.stdout))
    balances = [{"account": account, "amount": str(10**18)} for account in ACCOUNTS]
    (folder / "genesis.json").write_text(json.dumps({"committee": members, "balances": balances}))
    shard, http = free_ports()
    subprocess.run([node, "init", "--config", folder / "authority.toml", "--data", folder / "data",
                    "--keys", folder / "keys-0", "--genesis", folder / "genesis.json",
                    "--listen", f"127.0.0.1:{shard}", "--http", f"127.0.0.1:{http}"], check=True, capture_output=True)
    return f"http://127.0.0.1:{http}"


def wait_until_ready(process, address):
    """Waits for the node, or says that it ended."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            sys.exit("the node ended by itself")
        try:
            urllib.request.urlopen(f"{address}/ready", timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    sys.exit("the node never was ready")


def check(address, folder):
    """Runs Schemathesis against the node, in a folder for what it keeps. Gives its exit code."""
    seed = os.environ.get("SEED", "1")
    print(f"requests from {address}/v1/openapi.json, seed {seed}", flush=True)
    program = Path(sys.executable).absolute().parent / "st"
    return subprocess.run([program, "--config-file", HERE / "schemathesis.toml", "run", f"{address}/v1/openapi.json",
                           "--seed", seed, "--max-time", str(SECONDS_MAX)], cwd=folder, check=False).returncode


def main():
    node = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="fastpay-api-") as folder:
        folder = Path(folder)
        address = set_up(node, folder)
        with open(folder / "log", "w") as log:
            process = subprocess.Popen([node, "run", "--config", folder / "authority.toml"], stderr=log)
        try:
            wait_until_ready(process, address)
            code = check(address, folder)
            if process.poll() is not None:
                print((folder / "log").read_text(), file=sys.stderr)
                sys.exit("the node ended by itself")
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
    sys.exit(code)


if __name__ == "__main__":
    main()
