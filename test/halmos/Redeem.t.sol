// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {Proof} from "./Proof.sol";

/// @title No redemption without a quorum, and none twice
contract RedeemProof is Proof {
    function check_RedeemNeedsAQuorum() public {
        Redemption memory order = _anyOrder("order");
        bytes memory votes = _anyVotes();
        bool spent = fastPay.isRedeemed(order.sender, order.sequence);
        (uint256 held, uint256 total) = (address(fastPay).balance, fastPay.totalBalance(ETHER));
        uint256 waiting = fastPay.totalQueued(ETHER);
        bool success = _call(abi.encodeCall(IFastPay.redeem, (order, 0, votes)));
        if (success) {
            assert(!spent);
            assert(order.fee <= order.amount);
            assert(fastPay.isRedeemed(order.sender, order.sequence));
            _assertQuorum(votes, fastPay.redemptionVoteDigest(0, order));
            // It left the balance, or it waits in it.
            uint256 left = total - fastPay.totalBalance(ETHER);
            assert(left + (fastPay.totalQueued(ETHER) - waiting) == order.amount);
            assert(held - address(fastPay).balance <= left);
        } else {
            assert(address(fastPay).balance == held);
        }
    }

    function check_ABundleNeedsAQuorum() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](1);
        items[0] = CertifiedRedemption({redemption: _anyOrder("order"), epoch: 0, votes: _someVotes()});
        Redemption memory order = items[0].redemption;
        bool spent = fastPay.isRedeemed(order.sender, order.sequence);
        (uint256 held, uint256 total) = (address(fastPay).balance, fastPay.totalBalance(ETHER));
        bool success = _call(abi.encodeCall(IFastPay.redeemMany, (items)));
        if (success && !spent) {
            _assertQuorum(items[0].votes, fastPay.redemptionVoteDigest(0, order));
            assert(order.fee <= order.amount);
            assert(held - address(fastPay).balance <= order.amount);
        } else {
            assert(address(fastPay).balance == held);
            assert(fastPay.totalBalance(ETHER) == total);
        }
    }

    function check_ABatchNeedsAQuorum() public {
        Redemption[] memory items = new Redemption[](1);
        items[0] = _anyOrder("order");
        bytes memory votes = _someVotes();
        uint256 held = address(fastPay).balance;
        bool success = _call(abi.encodeCall(IFastPay.redeemBatch, (items, 0, votes)));
        if (success) {
            _assertQuorum(votes, fastPay.redemptionBatchVoteDigest(0, items));
            assert(fastPay.isRedeemed(items[0].sender, items[0].sequence));
        } else {
            assert(address(fastPay).balance == held);
        }
    }

    /// @dev So the second of two in one batch is not paid either: the first has spent it.
    function check_ABatchPaysNothingThatIsSpent() public {
        Redemption[] memory items = new Redemption[](1);
        items[0] = _anyOrder("order");
        vm.assume(fastPay.isRedeemed(items[0].sender, items[0].sequence));
        (uint256 held, uint256 total) = (address(fastPay).balance, fastPay.totalBalance(ETHER));
        uint256 waiting = fastPay.totalQueued(ETHER);
        _call(abi.encodeCall(IFastPay.redeemBatch, (items, 0, _someVotes())));
        assert(address(fastPay).balance == held);
        assert(fastPay.totalBalance(ETHER) == total && fastPay.totalQueued(ETHER) == waiting);
        assert(fastPay.isRedeemed(items[0].sender, items[0].sequence));
    }

    /// @dev What is spent stays so, whichever order is redeemed after it.
    function check_WhatIsSpentStaysSpent(bytes32 sender, uint64 sequence) public {
        vm.assume(fastPay.isRedeemed(sender, sequence));
        _call(abi.encodeCall(IFastPay.redeem, (_anyOrder("order"), 0, _someVotes())));
        assert(fastPay.isRedeemed(sender, sequence));
    }
}
