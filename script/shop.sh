#!/usr/bin/env bash
# Runs a localnet, fastpay-merchant on it, the sample shop, and the web wallet that the shop's links open, until Ctrl-C.
# `make shop` builds them and calls this script.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=$PWD/target/release
network=$PWD/target/localnet-shop
home=$network/merchant
for port in 3000 5173 7080; do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        echo "port $port of this machine is in use: end what listens there, such as another make shop or make web" >&2
        exit 1
    fi
done
rm -f "$network/network.json"
trap 'trap - EXIT; kill $(jobs -p) 2>/dev/null; wait' EXIT
trap 'exit 130' INT TERM
"$programs/fastpay-localnet" --name shop &
localnet=$!
until [ -e "$network/network.json" ]; do kill -0 $localnet; sleep 0.2; done
# Customers pay carol's account. The service has none of her keys.
account=$("$programs/fastpay" --home "$network/wallets/wallet" address --from carol)
"$programs/fastpay-merchant" --home "$home" init --wallet "$network/wallets/wallet" --account "$account" \
    --label "The corner bakery" --webhook-url http://127.0.0.1:3000/webhook --web-wallet http://localhost:5173/pay >/dev/null
"$programs/fastpay-merchant" --home "$home" run &
# Started without npm: if npm is ended, the process that it started keeps running.
(cd web && FASTPAY_NETWORK=$network/network.json exec ../node_modules/.bin/vite preview --logLevel warn) &
(cd merchant/shop && MERCHANT_SECRETS=$home/secrets exec node server.mjs) &
echo "
The shop is at http://localhost:3000, the web wallet at http://localhost:5173 (docs/WEB.md says how to try it).
To pay by the command, as above: fastpay deposit 10 --from alice, and then: fastpay pay 'LINK' --from alice"
wait -n
