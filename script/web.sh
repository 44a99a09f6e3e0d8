#!/usr/bin/env bash
# Runs a localnet and the web wallet on it until Ctrl-C. `make web` builds them and calls this script.
set -euo pipefail
cd "$(dirname "$0")/.."
network=$PWD/target/localnet-web/network.json
rm -f "$network"
target/release/fastpay-localnet --name web &
localnet=$!
trap 'trap - EXIT; kill $localnet 2>/dev/null; wait' EXIT
trap 'exit 130' INT TERM
until [ -e "$network" ]; do kill -0 $localnet; sleep 0.2; done
echo "The web wallet is at http://localhost:5173; docs/WEB.md says how to try it."
FASTPAY_NETWORK=$network npm run --silent preview -w web
