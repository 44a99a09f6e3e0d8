// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../interfaces/IFastPay.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title Payouts that neither the payee nor the token nor the caller can abuse
library Payouts {
    /// @notice The address that denotes ETH.
    address internal constant ETHER = address(0);

    /// @notice The gas that a recipient of ETH may use: enough for a smart wallet behind a proxy that logs the receipt
    /// and writes a new storage slot. Such a write costs 22,100 today and 110,020 under the rules announced for
    /// Amsterdam (EIP-8037, EIP-8038). A hundred payouts that use all of it fit into one transaction (EIP-7825). If a
    /// recipient needs more, the payout becomes a claim, which is paid without a limit.
    uint256 internal constant ETHER_GAS = 115_000;

    /// @notice The gas that a token may use for a transfer: several times that of the most expensive common tokens, and
    /// enough for two new storage slots under the rules announced for Amsterdam.
    uint256 internal constant TOKEN_GAS = 300_000;

    /// @notice The gas that must remain beside the payout's allowance. A call with value to an account with code costs
    /// 11,600 today, and 14,300 under the rules announced for Amsterdam, before it forwards any gas. This is five times
    /// that, because prices change and this contract does not. A call to a new account costs more, but uses no
    /// forwarded gas.
    uint256 internal constant CALL_GAS = 75_000;

    // A call forwards at most 63/64 of what is left after its own cost, and silently less than asked for.
    uint256 private constant ETHER_GAS_LEFT = ETHER_GAS + ETHER_GAS / 63 + CALL_GAS;
    uint256 private constant TOKEN_GAS_LEFT = TOKEN_GAS + TOKEN_GAS / 63 + CALL_GAS;

    /// @notice Pays within a fixed gas allowance. Reverts if too little gas is left for the full allowance, so that the
    /// caller's gas limit cannot turn somebody's payout into a claim.
    function trySend(address asset, address to, uint256 amount) internal returns (bool) {
        (uint256 allowance, uint256 required) =
            asset == ETHER ? (ETHER_GAS, ETHER_GAS_LEFT) : (TOKEN_GAS, TOKEN_GAS_LEFT);
        uint256 available = gasleft();
        require(available >= required, IFastPay.InsufficientGas(available, required));
        return send(asset, to, amount, allowance);
    }

    /// @notice Pays with at most `gasLimit` of the remaining gas. Returns whether the payout succeeded.
    function send(address asset, address to, uint256 amount, uint256 gasLimit)
        internal
        returns (bool success)
    {
        if (asset == ETHER) {
            // Solidity's call copies all return data, and a recipient could make the caller pay for a lot of it.
            assembly ("memory-safe") {
                success := call(gasLimit, to, amount, 0, 0, 0, 0)
            }
            return success;
        }

        bytes memory data = abi.encodeCall(IERC20.transfer, (to, amount));
        uint256 returned;
        uint256 returnedBytes;
        // As above: at most one word of return data is copied, into scratch space.
        assembly ("memory-safe") {
            success := call(gasLimit, asset, 0, add(data, 0x20), mload(data), 0, 0x20)
            returned := mload(0)
            returnedBytes := returndatasize()
        }
        // A token that answers must answer `true`. One that does not answer must at least exist, because a call to
        // an address without code succeeds.
        if (returnedBytes == 0) return success && asset.code.length > 0;
        return success && returnedBytes >= 0x20 && returned == 1;
    }
}
