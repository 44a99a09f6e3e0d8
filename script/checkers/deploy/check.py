#!/usr/bin/env python3
"""Checks that everything that deploy/ names exists, and that the programs that read its files accept them.

It compares the metrics of alerts and dashboard with those that a real authority and a real relayer serve, and parses
each expression as PromQL. Each alert must have its run-book in docs/OPERATIONS.md, and each run-book its alert. systemd
verifies the units if it is installed. Docker reads the compose file if its client has `compose`; the references of that
file are checked in any case.
"""

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import promql_parser
import yaml

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
RUN_BOOKS = ROOT / "docs" / "OPERATIONS.md"
# No step takes this long, even on a busy machine.
PATIENCE_SECONDS = 180
# In tenths of systemd's exposure level, whose maximum is 10.0; both units are at 1.2.
EXPOSURE_MAX = "20"
# Prometheus chooses its parser by this content type.
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
ACCOUNT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"

findings = []


def expect(good, finding):
    """Records the finding if the condition is false."""
    if not good:
        findings.append(finding)


def run(*command, **options):
    """Runs a command that must succeed."""
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def free_ports(count):
    """TCP ports that are free at this moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def metrics_of(process, port, log, complete):
    """The names of the metrics that a program serves, once they contain `complete`."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            sys.exit(f"it ended by itself:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                text, kind = answer.read().decode(), answer.headers["content-type"]
            if complete in text:
                expect(kind == OPEN_METRICS and text.endswith("# EOF\n"), f"port {port}: {kind} is not OpenMetrics")
                return set(re.findall(r"^(\w+)[ {]", text, re.MULTILINE)) - {"#"}
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    sys.exit(f"it never served {complete}:\n{log.read_text()}")


def served(programs, folder):
    """The names of all metrics of an authority without a Primary, and of a relayer without a reachable Ethereum node."""
    shard, http, metrics = free_ports(3)
    members = [json.loads(run(programs / "fastpay-node", "keygen", "--plain", "--keys", folder / f"keys-{number}"))
               for number in range(4)]
    balances = [{"account": ACCOUNT, "amount": "1000"}]
    (folder / "genesis.json").write_text(json.dumps({"committee": members, "balances": balances}))
    made = run(programs / "fastpay-node", "init", "--config", folder / "authority.toml", "--data", folder / "data",
               "--keys", folder / "keys-0", "--genesis", folder / "genesis.json", "--listen", f"127.0.0.1:{shard}",
               "--http", f"127.0.0.1:{http}")
    (folder / "endpoints.json").write_text(json.dumps({"authorities": [json.loads(made)]}))
    run(programs / "fastpay-relayer", "--config", folder / "relayer.toml", "init", "--unencrypted-key", "--rpc-url",
        "http://127.0.0.1:1", "--chain-id", "1", "--contract", "0x" + "01" * 20, "--endpoints", folder / "endpoints.json")
    names = set()
    for command, port, complete in [
        (["fastpay-node", "run", "--config", folder / "authority.toml"], http, "fastpay_asset_deposited{"),
        (["fastpay-relayer", "--config", folder / "relayer.toml", "run", "--metrics", f"127.0.0.1:{metrics}"], metrics,
         "fastpay_relayer_build_info"),
    ]:
        log = folder / "log"
        with open(log, "w") as stderr:
            process = subprocess.Popen([programs / command[0], *command[1:]], stderr=stderr, cwd=folder)
        try:
            names |= metrics_of(process, port, log, complete)
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
    return names


def check_expression(where, expression, names):
    """Checks that the expression parses, and that a program serves each metric in it."""
    try:
        promql_parser.parse(expression.replace("$__rate_interval", "5m"))
    except ValueError as error:
        findings.append(f"{where}: {error}: {expression}")
    used = re.findall(r"\bfastpay_\w+", expression)
    expect(used or "up{" in expression, f"{where}: no metric in {expression}")
    for name in used:
        expect(name in names, f"{where}: no program serves {name}")


def check_alerts(names):
    """Checks the alerts and their run-books, and returns the number of alerts."""
    rules = [rule for group in yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    alerts = [rule["alert"] for rule in rules]
    expect(len(alerts) == len(set(alerts)), "an alert is there twice")
    for rule in rules:
        check_expression(rule["alert"], rule["expr"], names)
        expect(rule["labels"]["severity"] in ("critical", "warning", "info"), f"{rule['alert']}: severity")
        expect(rule["annotations"]["summary"], f"{rule['alert']}: no summary")
        expect(rule["annotations"].get("runbook_url") == "{{ $externalLabels.runbooks }}#" + rule["alert"].lower(),
               f"{rule['alert']}: runbook_url is not the anchor of its run-book")
    headings = re.findall(r"^#### (FastPay\w+)$", RUN_BOOKS.read_text(), re.MULTILINE)
    expect(sorted(headings) == sorted(alerts),
           f"alerts without a run-book, or the other way round: {sorted(set(headings) ^ set(alerts))}")
    labels = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["global"]["external_labels"]
    expect(str(labels.get("runbooks")).startswith("https://"), "prometheus.yml: the external label `runbooks` is no URL")
    return len(alerts)


def check_dashboard(names):
    """Checks the dashboard's panels, and returns their number."""
    dashboard = json.loads((DEPLOY / "grafana/dashboards/fastpay.json").read_text())
    panels = dashboard["panels"]
    expect(len({panel["id"] for panel in panels}) == len(panels), "two panels have one id")
    for panel in panels:
        for target in panel.get("targets", []):
            check_expression(panel["title"], target["expr"], names)
    return len(panels)


def check_image(image):
    """Checks that the image is pinned to a release."""
    expect(re.search(r":v?\d+\.\d+", image), f"{image} is not pinned to a release")


def check_compose():
    """Checks the references, pinned images and privileges of the compose file."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    targets = {target for job in yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
               for static in job["static_configs"] for target in static["targets"]}
    for target in targets:
        expect(target.split(":")[0] in compose["services"], f"prometheus.yml: no service {target}")
    for name, service in compose["services"].items():
        check_image(service["image"])
        expect(service.get("cap_drop") == ["ALL"], f"{name}: keeps capabilities")
        expect("no-new-privileges:true" in service.get("security_opt", []), f"{name}: may gain privileges")
        for secret in service.get("secrets", []):
            expect(secret["source"] in compose["secrets"], f"{name}: no secret {secret['source']}")
        for other in service.get("depends_on", []):
            expect(other in compose["services"], f"{name}: no service {other}")
        for port in service.get("ports", []):
            expect(port.startswith("127.0.0.1:"), f"{name}: port {port} is open to the world")
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./config/"):
                continue
            known = (DEPLOY / source).exists() if source.startswith("./") else source in compose["volumes"]
            expect(known, f"{name}: no volume {source}")
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0:
        read = subprocess.run([docker, "compose", "--file", DEPLOY / "compose.yaml", "config", "--quiet"],
                              capture_output=True, text=True, check=False)
        expect(read.returncode == 0, f"docker compose config: {read.stderr}")


def check_dockerfile():
    """Checks that the image is pinned, runs without root, and is built of every member of the workspace."""
    text = (DEPLOY / "Dockerfile").read_text()
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?", text, re.MULTILINE)
    own = {name for _, name in stages} | {"scratch", "from-${PROGRAMS}"}
    for image in {image for image, _ in stages} - own:
        check_image(image)
    users = re.findall(r"^USER (\S+)", text.split("\nFROM ")[-1], re.MULTILINE)
    expect(users and not users[-1].startswith(("0", "root")), "the image runs as root")
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    # `.cargo` has the compiler settings of the members, `contracts/interfaces` what `ethereum` calls.
    for member in [".cargo", "contracts/interfaces", *workspace["members"]]:
        expect(f"\nCOPY {member} {member}\n" in text, f"Dockerfile: does not copy {member}")
        expect(f"!{member}" in ignored, f"Dockerfile.dockerignore: leaves {member} out")
    rust = re.search(r"^FROM rust:(\d+\.\d+)", text, re.MULTILINE).group(1)
    expect(rust == workspace["package"]["rust-version"], f"Dockerfile: Rust {rust}")


def check_units(folder):
    """Verifies the units, with /bin/true in place of our programs."""
    analyze = shutil.which("systemd-analyze")
    if not analyze:
        print("systemd-analyze is not here: the units are not verified")
        return
    units = []
    for unit in (DEPLOY / "systemd").iterdir():
        text = re.sub(r"/usr/bin/fastpay-\w+", "/bin/true", unit.read_text())
        units.append(folder / unit.name)
        units[-1].write_text(text)
    for arguments in [["verify", "--man=no"], ["security", "--offline=true", f"--threshold={EXPOSURE_MAX}"]]:
        said = subprocess.run([analyze, *arguments, *units], capture_output=True, text=True, check=False)
        # systemd-analyze ignores an unknown key and only prints that it does.
        good = said.returncode == 0 and "ignoring" not in said.stderr
        expect(good, f"systemd-analyze {arguments[0]}: {said.stderr or said.stdout[-500:]}")


def main():
    programs = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="fastpay-deploy-") as folder:
        names = served(programs, Path(folder))
        check_units(Path(folder))
    alerts, panels = check_alerts(names), check_dashboard(names)
    check_compose()
    check_dockerfile()
    for finding in findings:
        print(finding, file=sys.stderr)
    print(f"deploy/: {len(names)} metrics, {alerts} alerts, {panels} panels; {len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
