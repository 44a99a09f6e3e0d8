// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, SafetyParameters} from "../../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "../FastPayTest.sol";
import {LimitsHandler} from "./LimitsHandler.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title What holds after any sequence of calls, whatever is paused, installed, queued or refused
contract LimitsInvariantsTest is FastPayTest {
    LimitsHandler internal handler;
    SafetyParameters internal parameters;

    function setUp() public override {
        super.setUp();
        parameters = SafetyParameters({
            pauseDuration: 12 hours,
            pauseCooldown: 1 days,
            outflowWindow: 1 days,
            outflowShare: 2000,
            outflowDelay: 3 days,
            votesValidity: 6 days,
            unlockWindow: 3 days
        });
        fastPay = deploy(4, parameters);
        handler = new LimitsHandler(fastPay, guardian, this.keyOf);
        targetContract(address(handler));
        bytes4[] memory actions = new bytes4[](14);
        actions[0] = LimitsHandler.pass.selector;
        actions[1] = LimitsHandler.deposit.selector;
        actions[2] = LimitsHandler.redeem.selector;
        actions[3] = LimitsHandler.executeQueued.selector;
        actions[4] = LimitsHandler.claim.selector;
        actions[5] = LimitsHandler.install.selector;
        actions[6] = LimitsHandler.installWithoutTheCouncil.selector;
        actions[7] = LimitsHandler.pause.selector;
        actions[8] = LimitsHandler.unpause.selector;
        actions[9] = LimitsHandler.donate.selector;
        actions[10] = LimitsHandler.releaseQueued.selector;
        actions[11] = LimitsHandler.postpone.selector;
        actions[12] = LimitsHandler.changeMood.selector;
        actions[13] = LimitsHandler.redeemWithoutAQuorum.selector;
        targetSelector(FuzzSelector({addr: address(handler), selectors: actions}));
    }

    function keyOf(uint256 member) external pure returns (uint256) {
        return memberKey(member);
    }

    /// @dev Deposits = what left + what is still owed: as balance, of which some waits, and as claims.
    function invariant_NothingIsMadeOrLost() public view {
        for (uint256 i = 0; i < 3; ++i) {
            address asset = handler.assets(i);
            uint256 owed = fastPay.totalBalance(asset) + fastPay.totalClaims(asset);
            assertEq(fastPay.totalBalance(asset), handler.deposited(asset) - handler.redeemed(asset));
            assertEq(handler.deposited(asset), owed + handler.left(asset));
            assertEq(_held(asset), owed + handler.donated(asset));
        }
    }

    /// @dev All that waits is somebody's, and all claims are.
    function invariant_WhatWaitsAndWhatIsClaimedAddsUp() public view {
        uint256[3] memory waits;
        for (uint256 i = 0; i < handler.numberWaiting(); ++i) {
            LimitsHandler.Waiting memory item = handler.waiting(i);
            for (uint256 j = 0; j < 3; ++j) {
                if (item.order.asset == handler.assets(j)) waits[j] += item.order.amount;
            }
            (uint256 executableAt, address by, uint64 epoch, bool needsVotes) =
                fastPay.queued(item.order.sender, item.order.sequence);
            assertEq(executableAt, item.executableAt + handler.postponed(item.epoch));
            assertEq(by, item.relayer);
            assertEq(epoch, item.epoch);
            assertEq(needsVotes, handler.compromised(item.epoch));
        }
        for (uint256 i = 0; i < 3; ++i) {
            address asset = handler.assets(i);
            assertEq(fastPay.totalQueued(asset), waits[i]);
            uint256 claims = 0;
            for (uint256 j = 0; j < 3; ++j) {
                claims += fastPay.claimOf(handler.payees(j), asset);
            }
            assertEq(fastPay.totalClaims(asset), claims);
        }
    }

    function invariant_EachNumberIsPaidAtMostOnce() public view {
        handler.eachNumber(this.checkNumber);
    }

    function checkNumber(bytes32 sender, uint64 sequence) external view {
        uint256 times = handler.paid(sender, sequence);
        assertLe(times, 1);
        assertLe(times, handler.spent(sender, sequence));
        assertEq(fastPay.isRedeemed(sender, sequence), handler.spent(sender, sequence) == 1);
    }

    /// @dev Of a bucket that holds a share and fills at a share a window, no stretch of time takes more than both and what
    /// came in meanwhile.
    function invariant_NoMoreLeavesAtOnceThanTheLimit() public view {
        for (uint256 i = 0; i < 3; ++i) {
            LimitsHandler.Flow[] memory all = handler.flows(handler.assets(i));
            for (uint256 first = 0; first < all.length; ++first) {
                (uint256 shares, uint256 refilled) = (0, 0); // in billionths
                for (uint256 last = first; last < all.length; ++last) {
                    LimitsHandler.Flow memory flow = all[last];
                    uint256 part = flow.amount * 1e9 * 10_000 / (parameters.outflowShare * flow.balance);
                    if (flow.isDeposit) refilled += part + 1;
                    else shares += part;
                    uint256 stretch = flow.time - all[first].time;
                    assertLe(shares, 1e9 + 1e9 * stretch / parameters.outflowWindow + refilled);
                }
            }
        }
    }

    function invariant_EveryEventHasItsIndex() public view {
        assertEq(fastPay.lastTransactionIndex(), handler.events());
    }

    /// @dev A pause ends by itself, the next cannot follow at once, and only the guardian's were any.
    function invariant_PausesEnd() public view {
        assertEq(fastPay.pausedUntil(), handler.pausedUntil());
        assertEq(fastPay.nextPauseAt(), handler.nextPauseAt());
        assertLe(fastPay.pausedUntil(), handler.time() + parameters.pauseDuration);
        if (fastPay.pausedUntil() > 0) {
            assertEq(fastPay.nextPauseAt(), fastPay.pausedUntil() + parameters.pauseCooldown);
        }
    }

    function invariant_EpochsOnlyGrowAndEachHasACommittee() public view {
        assertEq(fastPay.epoch(), handler.epoch());
        for (uint64 epoch = 0; epoch <= handler.epoch(); ++epoch) {
            uint256 size = fastPay.committee(epoch).length;
            assertGe(size, 4);
            uint256 quorum = fastPay.quorum(epoch);
            assertGt(2 * quorum, size + (size - 1) / 3);
            assertLe(quorum, size - (size - 1) / 3);
            assertEq(fastPay.compromised(epoch), handler.compromised(epoch));
        }
        if (handler.epoch() > 0) {
            assertEq(fastPay.epochValidUntil(handler.epoch() - 1), handler.previousEpochEnds());
        }
    }

    /// @dev Whatever was done, in the end everything that waits can be paid as far as it is covered, and so can everything
    /// that is claimed.
    function afterInvariant() public {
        handler.changeMood(0, 0);
        uint256 until = fastPay.pausedUntil();
        vm.warp((until > handler.time() ? until : handler.time()) + parameters.outflowDelay + 30 days);
        for (uint256 i = 0; i < handler.numberWaiting(); ++i) {
            LimitsHandler.Waiting memory item = handler.waiting(i);
            uint256 balance = fastPay.totalBalance(item.order.asset);
            (bool done, bytes memory reason) = address(fastPay).call(handler.executionOf(i, true));
            assertEq(done, item.order.amount <= balance);
            if (!done) assertEq(bytes4(reason), IFastPay.BalanceTooLow.selector);
        }
        for (uint256 i = 0; i < 3; ++i) {
            address asset = handler.assets(i);
            for (uint256 j = 0; j < 3; ++j) {
                address owner = handler.payees(j);
                uint256 owed = fastPay.claimOf(owner, asset);
                if (owed == 0) continue;
                vm.prank(owner);
                fastPay.claim(asset, bob, owed);
            }
            assertEq(fastPay.totalClaims(asset), 0);
        }
    }

    function _held(address asset) private view returns (uint256) {
        return asset == ETHER ? address(fastPay).balance : IERC20(asset).balanceOf(address(fastPay));
    }
}
