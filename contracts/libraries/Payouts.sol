// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../interfaces/IFastPay.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title Paying out, without letting the payee, the token or the caller do harm
library Payouts {
    /// @notice The address that denotes ETH.
    address internal constant ETHER = address(0);

    /// @notice What a recipient of ETH may spend: enough for a smart wallet behind a proxy that logs the receipt, also
    /// where it fills a storage slot for the first time. That costs 22,100 today and 110,020 under the rules announced
    /// for Amsterdam (EIP-8037, EIP-8038). A hundred payouts that spend all of it fit into one transaction (EIP-7825).
    /// A recipient that needs more refuses, and the payout becomes a claim, which is paid without a bound.
    uint256 internal constant ETHER_GAS = 115_000;

    /// @notice What a token may spend on a transfer: several times what the dearest common ones take, and under the rules
    /// announced for Amsterdam still two slots that are filled for the first time.
    uint256 internal constant TOKEN_GAS = 300_000;

    /// @notice What must be left beside a payout's own gas. A call with value to an account with code costs 11,600 today,
    /// and 14,300 under the rules announced for Amsterdam, before it forwards anything. Five times that, because prices
    /// change and this contract does not. A new account costs more, and needs none of what is forwarded.
    uint256 internal constant CALL_GAS = 75_000;

    // A call forwards at most 63/64 of what is left after its own cost, and silently less than asked for.
    uint256 private constant ETHER_GAS_LEFT = ETHER_GAS + ETHER_GAS / 63 + CALL_GAS;
    uint256 private constant TOKEN_GAS_LEFT = TOKEN_GAS + TOKEN_GAS / 63 + CALL_GAS;

    /// @notice Pays within a fixed allowance of gas. Whether it went through does not depend on how much gas the
    /// caller sent: with too little for the full allowance it reverts, so that nobody can turn another's payout
    /// into a claim.
    function trySend(address asset, address to, uint256 amount) internal returns (bool) {
        (uint256 allowance, uint256 required) =
            asset == ETHER ? (ETHER_GAS, ETHER_GAS_LEFT) : (TOKEN_GAS, TOKEN_GAS_LEFT);
        uint256 available = gasleft();
        require(available >= required, IFastPay.InsufficientGas(available, required));
        return send(asset, to, amount, allowance);
    }

    /// @notice Pays with as much gas as `gasLimit` and the caller allow. False if the payout did not go through.
    function send(address asset, address to, uint256 amount, uint256 gasLimit)
        internal
        returns (bool success)
    {
        if (asset == ETHER) {
            // Solidity's own call copies all return data, for which the recipient would let the caller pay.
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
