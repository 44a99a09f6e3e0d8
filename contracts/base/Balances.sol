// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {AssetCap, IFastPay} from "../interfaces/IFastPay.sol";
import {Caps} from "../libraries/Caps.sol";
import {Outflow} from "../libraries/Outflow.sol";
import {Payouts} from "../libraries/Payouts.sol";
import {Holding} from "../types/Holding.sol";
import {State, States} from "../types/State.sol";
import {Roles} from "./Roles.sol";

/// @title Balances, claims, deposit caps and outflow limits of each asset
/// @dev Only `_holding` and `_setHolding` know where an asset's holding is stored. ETH's holding is a part of `State`,
/// which every call reads anyway. Each token has a slot of its own.
// slither-disable-next-line locked-ether,unimplemented-functions -- FastPay completes it, and pays ether out
abstract contract Balances is Roles {
    /// @dev The maximum balance of a token. Authorities keep balances as signed 128-bit numbers.
    uint256 private constant TOKEN_BALANCE_MAX = uint256(uint128(type(int128).max));

    mapping(address token => Holding) private _tokenHoldings;

    /// @dev The sum of all claims of an asset. The balance does not include it.
    mapping(address asset => uint256) private _totalClaims;

    /// @dev What each owner can claim of an asset.
    mapping(address owner => mapping(address asset => uint256)) private _claims;

    constructor(AssetCap[] memory caps) {
        for (uint256 i = 0; i < caps.length; ++i) {
            (address asset, uint128 cap) = (caps[i].asset, caps[i].cap);
            Holding holding = _holding(asset);
            require(cap > 0 && holding.cap() == 0, InvalidCap(asset, _capOf(asset, holding), cap));
            _setHolding(asset, holding.withCap(Caps.encode(cap)));
        }
    }

    /// @inheritdoc IFastPay
    function setCap(address asset, uint128 cap) external onlyCouncil nonReentrant {
        Holding holding = _holding(asset);
        uint256 current = _capOf(asset, holding);
        holding = holding.withCap(Caps.encode(cap));
        uint256 next = _capOf(asset, holding);
        // Zero means that there is no cap.
        require(cap > 0 && next > current, InvalidCap(asset, current, cap));
        _setHolding(asset, holding);
        emit CapRaised(asset, next);
    }

    /// @inheritdoc IFastPay
    function totalBalance(address asset) external view returns (uint256) {
        return _holding(asset).balance();
    }

    /// @inheritdoc IFastPay
    function depositCap(address asset) external view returns (uint256) {
        return _capOf(asset, _holding(asset));
    }

    /// @inheritdoc IFastPay
    function totalClaims(address asset) external view returns (uint256) {
        return _totalClaims[asset];
    }

    /// @inheritdoc IFastPay
    function claimOf(address owner, address asset) external view returns (uint256) {
        return _claims[owner][asset];
    }

    /// @inheritdoc IFastPay
    function outflowAvailable(address asset) external view returns (uint256) {
        Holding holding = _holding(asset);
        return Outflow.available(holding.fullAt(), holding.balance(), OUTFLOW_SHARE, OUTFLOW_WINDOW);
    }

    /// @dev Adds a deposit to the asset's balance. Returns the amount and the index of the event.
    /// @param state The current state.
    /// @param held What the contract holds of the asset now. The deposit reverts if this is less than the contract
    /// owes: it would pay for what is missing.
    function _credit(State state, address asset, uint256 received, uint256 held)
        internal
        returns (uint128 amount, uint64 index)
    {
        require(received > 0, NothingReceived(asset));
        Holding holding = _holdingIn(state, asset);
        uint128 balance = holding.balance();
        uint256 cap = _capOf(asset, holding);
        require(received <= cap - balance, AssetCapExceeded(asset, balance, received, cap));
        // forge-lint: disable-next-line(unsafe-typecast) -- not above the cap
        amount = uint128(received);
        uint48 fullAt = Outflow.refill(holding.fullAt(), amount, balance, OUTFLOW_SHARE, OUTFLOW_WINDOW);
        unchecked {
            balance += amount; // not above the cap
        }
        uint256 owed = holding.hasClaims() ? balance + _totalClaims[asset] : balance;
        require(held >= owed, AssetUnderCollateralized(asset, held, owed));
        index = _setHoldingAndCount(state, asset, holding.withBalance(balance, fullAt));
    }

    /// @dev Subtracts an amount from the asset's balance if the outflow limit lets it leave at once. Returns whether it
    /// does, and the index of the event.
    function _debitWithinLimit(address asset, uint128 amount, uint256 item)
        internal
        returns (bool passes, uint64 index)
    {
        Holding holding = _holding(asset);
        uint128 balance = holding.balance();
        require(amount <= balance, BalanceTooLow(item, asset, balance, amount));
        uint48 fullAt;
        (passes, fullAt) = Outflow.spend(holding.fullAt(), amount, balance, OUTFLOW_SHARE, OUTFLOW_WINDOW);
        if (!passes) return (false, _nextIndex());
        unchecked {
            balance -= amount; // checked above
        }
        index = _setHoldingAndCount(_state, asset, holding.withBalance(balance, fullAt));
    }

    /// @dev Subtracts a queued amount from the asset's balance. Returns the index of the event.
    function _debit(address asset, uint128 amount) internal returns (uint64 index) {
        Holding holding = _holding(asset);
        uint128 balance = holding.balance();
        require(amount <= balance, BalanceTooLow(0, asset, balance, amount));
        return _setHoldingAndCount(_state, asset, holding.withBalance(balance - amount, holding.fullAt()));
    }

    /// @dev Records a failed payout as a claim.
    // slither-disable-next-line reentrancy-no-eth -- the guard of every external function holds
    function _addClaim(address owner, address asset, uint256 amount) internal {
        _totalClaims[asset] += amount;
        _claims[owner][asset] += amount;
        // ETH cannot go missing, so no caller asks whether claims of it exist.
        if (asset != Payouts.ETHER) _setHolding(asset, _holding(asset).withClaims(true));
    }

    /// @dev Subtracts an amount from a claim.
    function _takeClaim(address owner, address asset, uint256 amount) internal {
        uint256 claimed = _claims[owner][asset];
        require(claimed > 0, NothingToClaim(owner, asset));
        require(amount > 0 && amount <= claimed, InvalidClaimAmount(owner, asset, claimed, amount));
        _claims[owner][asset] = claimed - amount;
        uint256 left = _totalClaims[asset] - amount;
        _totalClaims[asset] = left;
        if (left == 0 && asset != Payouts.ETHER) _setHolding(asset, _holding(asset).withClaims(false));
    }

    function _holding(address asset) private view returns (Holding) {
        return asset == Payouts.ETHER ? _state.etherHolding() : _tokenHoldings[asset];
    }

    /// @dev Like `_holding`, for a caller that has read the state.
    function _holdingIn(State state, address asset) private view returns (Holding) {
        return asset == Payouts.ETHER ? state.etherHolding() : _tokenHoldings[asset];
    }

    /// @dev Like `_setHolding`, and takes the next index: ETH's holding and the index share a slot.
    // slither-disable-next-line costly-loop -- each redemption of a call is written before it is paid
    function _setHoldingAndCount(State state, address asset, Holding holding) private returns (uint64) {
        state = state.withNextIndex();
        if (asset == Payouts.ETHER) state = state.withEtherHolding(holding);
        else _tokenHoldings[asset] = holding;
        _state = state;
        return state.lastTransactionIndex();
    }

    // slither-disable-next-line costly-loop -- each claim of a call is noted before the next payout
    function _setHolding(address asset, Holding holding) private {
        if (asset == Payouts.ETHER) _state = _state.withEtherHolding(holding);
        else _tokenHoldings[asset] = holding;
    }

    /// @dev The maximum balance of an asset: the largest number that fits, or the asset's cap if that is lower.
    function _capOf(address asset, Holding holding) private pure returns (uint256 cap) {
        cap = asset == Payouts.ETHER ? States.ETHER_BALANCE_MAX : TOKEN_BALANCE_MAX;
        uint16 float = holding.cap();
        if (float != 0) {
            uint256 own = Caps.decode(float);
            if (own < cap) cap = own;
        }
    }
}
