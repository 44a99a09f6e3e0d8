// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../interfaces/IFastPay.sol";
import {Outflow} from "../libraries/Outflow.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {Holding, Holdings} from "../types/Holding.sol";
import {States} from "../types/State.sol";
import {Roles} from "./Roles.sol";

/// @title What is held of each asset for accounts, and how much of it may leave at once
/// @dev Where an asset's holding is, is known to `_holding` and `_setHolding` alone: ether's is a part of `State`, which
/// every call reads anyway; each token has a slot of its own.
// slither-disable-next-line locked-ether,unimplemented-functions -- FastPay completes it, and pays ether out
abstract contract Balances is Roles {
    /// @dev The most that is held of a token for accounts: authorities keep balances as signed 128-bit numbers.
    uint256 private constant TOKEN_BALANCE_MAX = uint256(uint128(type(int128).max));

    mapping(address token => Holding) private _tokenHoldings;

    /// @inheritdoc IFastPay
    function totalBalance(address asset) external view returns (uint256 balance) {
        (balance,) = _holding(asset);
    }

    /// @inheritdoc IFastPay
    function outflowAvailable(address asset) external view returns (uint256) {
        (uint128 balance, uint48 fullAt) = _holding(asset);
        return Outflow.available(fullAt, balance, OUTFLOW_SHARE, OUTFLOW_WINDOW);
    }

    /// @dev Adds what has arrived of an asset to its balance, and returns it as the amount that it is.
    function _credit(address asset, uint256 received) internal returns (uint128 amount) {
        require(received > 0, NothingReceived(asset));
        (uint128 balance, uint48 fullAt) = _holding(asset);
        uint256 most = asset == Payouts.ETHER ? States.ETHER_BALANCE_MAX : TOKEN_BALANCE_MAX;
        require(received <= most - balance, AssetCapExceeded(asset, balance, received, most));
        // forge-lint: disable-next-line(unsafe-typecast) -- the most fits
        amount = uint128(received);
        _setHolding(asset, balance + amount, fullAt);
    }

    /// @dev Takes an amount off an asset's balance, and says whether it may leave at once.
    function _debit(address asset, uint128 amount, uint256 item) internal returns (bool passes) {
        (uint128 balance, uint48 fullAt) = _holding(asset);
        require(amount <= balance, BalanceTooLow(item, asset, balance, amount));
        uint48 newFullAt;
        (passes, newFullAt) = Outflow.spend(fullAt, amount, balance, OUTFLOW_SHARE, OUTFLOW_WINDOW);
        unchecked {
            balance -= amount; // checked above
        }
        _setHolding(asset, balance, passes ? newFullAt : fullAt);
    }

    /// @dev What is held of an asset for accounts, and when its outflow limit will be whole again (see `Outflow`).
    function _holding(address asset) private view returns (uint128 balance, uint48 fullAt) {
        return asset == Payouts.ETHER ? _state.etherHolding() : _tokenHoldings[asset].parts();
    }

    // slither-disable-next-line costly-loop -- each redemption of a call is written before it is paid
    function _setHolding(address asset, uint128 balance, uint48 fullAt) private {
        if (asset == Payouts.ETHER) _state = _state.withEtherHolding(balance, fullAt);
        else _tokenHoldings[asset] = Holdings.pack(balance, fullAt);
    }
}
