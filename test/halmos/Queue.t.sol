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
        (uint256 executableAt,,,) = fastPay.queued(order.sender, order.sequence);
        (uint256 held, uint256 waiting) = (address(fastPay).balance, fastPay.totalQueued(ETHER));
        uint256 total = fastPay.totalBalance(ETHER);
        if (!_call(abi.encodeCall(IFastPay.executeQueued, (order, "")))) return;
        assert(executableAt <= block.timestamp);
        assert(waiting - fastPay.totalQueued(ETHER) == order.amount);
        assert(held - address(fastPay).balance <= order.amount);
        assert(total - fastPay.totalBalance(ETHER) == order.amount);
        assert(!_call(abi.encodeCall(IFastPay.executeQueued, (order, ""))));
    }

    function check_WhatACompromisedEpochQueuedNeedsAQuorum() public {
        Redemption memory order = _anyOrder("order");
        vm.assume(order.fee <= order.amount);
        (,,, bool needsVotes) = fastPay.queued(order.sender, order.sequence);
        vm.assume(needsVotes);
        assert(!_call(abi.encodeCall(IFastPay.executeQueued, (order, ""))));
        bytes memory votes = _someVotes();
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = order;
        bytes32 digest = fastPay.redemptionBatchVoteDigest(0, batch);
        if (_call(abi.encodeCall(IFastPay.executeQueued, (order, votes)))) _assertQuorum(votes, digest);
    }

    /// @dev And pays nothing, and frees no number.
    function check_AReleaseNeedsAQuorum() public {
        Redemption memory order = _anyOrder("order");
        (,,, bool needsVotes) = fastPay.queued(order.sender, order.sequence);
        (uint256 held, uint256 total) = (address(fastPay).balance, fastPay.totalBalance(ETHER));
        bool spent = fastPay.isRedeemed(order.sender, order.sequence);
        bytes memory votes = _someVotes();
        bytes32 digest = fastPay.releaseVoteDigest(0, order);
        if (!_call(abi.encodeCall(IFastPay.releaseQueued, (order, votes)))) return;
        assert(needsVotes);
        _assertQuorum(votes, digest);
        assert(address(fastPay).balance == held && fastPay.totalBalance(ETHER) == total);
        assert(fastPay.isRedeemed(order.sender, order.sequence) == spent);
    }

    /// @dev A claim pays its owner's own, and takes nothing from anybody else's.
    function check_AClaimIsTheCallersOwn(address other, address asset, uint256 amount) public {
        vm.assume(other != RELAYER);
        _checkClaim(
            RELAYER, other, asset, amount, abi.encodeCall(IFastPay.claim, (ETHER, address(0xb0b), amount))
        );
    }

    /// @dev Anyone pays an owner's claim to the owner, and takes nothing from anybody else's.
    function check_AClaimForAnOwnerIsTheOwners(address other, address asset, uint256 amount) public {
        vm.assume(other != address(0xb0b));
        uint256 before = address(0xb0b).balance;
        _checkClaim(
            address(0xb0b),
            other,
            asset,
            amount,
            abi.encodeCall(IFastPay.claimFor, (address(0xb0b), ETHER, amount))
        );
        assert(address(0xb0b).balance == before || address(0xb0b).balance == before + amount);
    }

    function _checkClaim(address owner, address other, address asset, uint256 amount, bytes memory call)
        private
    {
        uint256 own = fastPay.claimOf(owner, ETHER);
        (uint256 claims, uint256 others) = (fastPay.totalClaims(ETHER), fastPay.claimOf(other, asset));
        (uint256 held, uint256 total) = (address(fastPay).balance, fastPay.totalBalance(asset));
        bool success = _call(call);
        if (success) assert(amount <= own);
        assert(held - address(fastPay).balance == (success ? amount : 0));
        assert(claims - fastPay.totalClaims(ETHER) == (success ? amount : 0));
        assert(own - fastPay.claimOf(owner, ETHER) == (success ? amount : 0));
        assert(fastPay.claimOf(other, asset) == others);
        assert(fastPay.totalBalance(asset) == total);
    }
}
