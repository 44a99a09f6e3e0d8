#!/usr/bin/env python3
"""Sends a live authority and a live fastpay-merchant requests that match their OpenAPI documents, and some that do not.

The authority belongs to a committee without a Primary. Its accounts have a balance and have paid nothing; the merchant
uses one of them. Schemathesis generates the requests from the document that each service serves: for each operation
well-formed and ill-formed requests, edge cases and chains of operations. No answer may be a server error, except a
documented 503, or one that the document does not describe. The stream of events is left out, because it does not end;
node/tests/node/http_events.rs tests it.
Each run sends the same requests, as many as the time allows. SEED=… selects others, API_SECONDS=… extends the time.
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
# The accounts that have a balance in the genesis file.
ACCOUNTS = ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"]
# No step takes this long, even on a busy machine.
PATIENCE_SECONDS = 180
# The time for the authority. The merchant has fewer operations and gets half of it.
AUTHORITY_SECONDS = int(os.environ.get("API_SECONDS", "40"))


def free_ports(count):
    """TCP ports that are free at this moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def say(*command):
    """Runs a program that must succeed, and returns its standard output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Authority:
    """One authority of a committee of four; the other three have only keys."""

    name = "authority"
    seconds = AUTHORITY_SECONDS
    headers = {}

    def __init__(self, programs, folder):
        node = programs / "fastpay-node"
        members = [json.loads(say(node, "keygen", "--plain", "--keys", folder / f"keys-{number}")) for number in range(4)]
        balances = [{"account": account, "amount": str(10**18)} for account in ACCOUNTS]
        (folder / "genesis.json").write_text(json.dumps({"committee": members, "balances": balances}))
        shard, http = free_ports(2)
        say(node, "init", "--config", folder / "authority.toml", "--data", folder / "data", "--keys", folder / "keys-0",
            "--genesis", folder / "genesis.json", "--listen", f"127.0.0.1:{shard}", "--http", f"127.0.0.1:{http}")
        self.run = [node, "run", "--config", folder / "authority.toml"]
        self.address = f"http://127.0.0.1:{http}"
        self.ready = f"{self.address}/ready"
        self.endpoints = [{"name": member["votingKey"], "shards": [f"http://127.0.0.1:{shard}"]} for member in members]


class Merchant:
    """A fastpay-merchant whose wallet uses the authority's committee."""

    name = "merchant"
    seconds = AUTHORITY_SECONDS // 2

    def __init__(self, programs, folder, authority):
        (folder / "endpoints.json").write_text(json.dumps({"authorities": authority.endpoints}))
        wallet, home, (port,) = folder / "wallet", folder / "merchant", free_ports(1)
        say(programs / "fastpay", "--home", wallet, "init", "--genesis", folder / "genesis.json",
            "--endpoints", folder / "endpoints.json")
        merchant = programs / "fastpay-merchant"
        say(merchant, "--home", home, "init", "--wallet", wallet, "--account", ACCOUNTS[0], "--listen", f"127.0.0.1:{port}")
        self.run = [merchant, "--home", home, "run"]
        self.headers = {"Authorization": f"Bearer {(home / 'secrets/token').read_text().strip()}"}
        self.address = f"http://127.0.0.1:{port}"
        self.ready = f"{self.address}/v1/status"


def wait_until_ready(service, process):
    """Waits until the service is ready. Ends the program if the service ends or takes too long."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            sys.exit(f"the {service.name} ended by itself")
        try:
            urllib.request.urlopen(urllib.request.Request(service.ready, headers=service.headers), timeout=1).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    sys.exit(f"the {service.name} never was ready")


def send_requests(service, folder):
    """Runs Schemathesis against a service and returns its exit code. Schemathesis stores its files in the folder."""
    seed = os.environ.get("SEED", "1")
    document = f"{service.address}/v1/openapi.json"
    print(f"requests from {document} of the {service.name}, seed {seed}", flush=True)
    program = Path(sys.executable).absolute().parent / "st"
    headers = [part for name, value in service.headers.items() for part in ("--header", f"{name}: {value}")]
    return subprocess.run([program, "--config-file", HERE / f"{service.name}.toml", "run", document, "--seed", seed,
                           "--max-time", str(service.seconds), *headers], cwd=folder, check=False).returncode


def check(service, folder):
    """Starts a service, sends it requests, and returns the exit code of Schemathesis."""
    log = folder / f"{service.name}.log"
    with open(log, "w") as file:
        process = subprocess.Popen(service.run, stderr=file)
    try:
        wait_until_ready(service, process)
        code = send_requests(service, folder)
        if process.poll() is not None:
            print(log.read_text(), file=sys.stderr)
            sys.exit(f"the {service.name} ended by itself")
        return code
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def main():
    programs = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="fastpay-api-") as folder:
        folder = Path(folder)
        authority = Authority(programs, folder)
        codes = [check(authority, folder), check(Merchant(programs, folder, authority), folder)]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
