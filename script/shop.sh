#!/usr/bin/env bash
# A localnet, fastpay-merchant on it, and the sample shop, until Ctrl-C. Called by `make shop`, which has built them.
set -euo pipefail
cd "$(dirname "$0")/.."
programs=$PWD/target/release
network=$PWD/target/localnet-shop
home=$network/merchant
rm -f "$network/network.json"
trap 'trap - EXIT; kill $(jobs -p) 2>/dev/null; wait' EXIT
"$programs/fastpay-localnet" --name shop &
localnet=$!
until [ -e "$network/network.json" ]; do kill -0 $localnet; sleep 0.2; done
# The shop is paid to carol's account; the service has none of her keys.
account=$("$programs/fastpay" --home "$network/wallets/wallet" address --from carol)
"$programs/fastpay-merchant" --home "$home" init --wallet "$network/wallets/wallet" --account "$account" \
    --label Bakery --webhook-url http://127.0.0.1:3000/webhook >/dev/null
"$programs/fastpay-merchant" --home "$home" run &
MERCHANT_SECRETS=$home/secrets node merchant/shop/server.mjs &
echo "Deposit first (fastpay deposit 10 --from alice), then pay the shop's link: fastpay pay 'LINK' --from alice"
wait -n
