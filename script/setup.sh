#!/usr/bin/env bash
# Installs the pinned Solidity tools and compiles the contracts. Called by `make setup`, one at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
cmp -s package-lock.json "$INSTALLED" || {
    echo "installing the Solidity tools of package-lock.json"
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && cp package-lock.json "$INSTALLED"
}
"$FOUNDRY/forge" build
# A partial compilation (such as `forge build contracts`) leaves other contracts without code, and forge then treats
# them as compiled.
for name in FastPay.sol/FastPay Council.sol/Council Deploy.s.sol/Deploy DeployDemoToken.s.sol/DeployDemoToken; do
    grep -q '"bytecode"' "out/$name.json" || { "$FOUNDRY/forge" build --force; break; }
done
