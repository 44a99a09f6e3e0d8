// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {Proof} from "./Proof.sol";

/// @title What waits and what is claimed is paid once, and to whom it is due
contract QueueProof is Proof {
    function check_WhatWaitsIsPaidOnce() public {
        Redemption memory order = _anyOrder("order");
        // As of every order that was let in (see `RedeemProof`).
        vm.assume(order.fee <= order.amount);
        (uint256 executableAt,) = fastPay.queued(order.sender, order.sequence);
        (uint256 held, uint256 waiting) = (address(fastPay).balance, fastPay.totalQueued(ETHER));
        uint256 total = fastPay.totalBalance(ETHER);
        if (!_call(abi.encodeCall(IFastPay.executeQueued, (order)))) return;
        assert(executableAt <= block.timestamp);
        assert(waiting - fastPay.totalQueued(ETHER) == order.amount);
        assert(held - address(fastPay).balance <= order.amount);
        assert(fastPay.totalBalance(ETHER) == total);
        assert(!_call(abi.encodeCall(IFastPay.executeQueued, (order))));
    }

    /// @dev A claim pays its owner's own, all of it, and takes nothing from anybody else's.
    function check_AClaimIsTheCallersOwn(address other, address asset) public {
        vm.assume(other != RELAYER);
        uint256 own = fastPay.claimOf(RELAYER, ETHER);
        (uint256 claims, uint256 others) = (fastPay.totalClaims(ETHER), fastPay.claimOf(other, asset));
        (uint256 held, uint256 total) = (address(fastPay).balance, fastPay.totalBalance(asset));
        bool success = _call(abi.encodeCall(IFastPay.claim, (ETHER)));
        assert(held - address(fastPay).balance == (success ? own : 0));
        assert(claims - fastPay.totalClaims(ETHER) == (success ? own : 0));
        assert(fastPay.claimOf(RELAYER, ETHER) == (success ? 0 : own));
        assert(fastPay.claimOf(other, asset) == others);
        assert(fastPay.totalBalance(asset) == total);
    }
}
