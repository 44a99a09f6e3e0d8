// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Brakes} from "../../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "../FastPayTest.sol";
import {BrakesHandler} from "./BrakesHandler.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title What holds whatever is paused, rotated, queued, and however much time passes
contract BrakesInvariantsTest is FastPayTest {
    BrakesHandler internal handler;
    Brakes internal brakes;

    function setUp() public override {
        super.setUp();
        brakes = Brakes({
            pauseDuration: 12 hours,
            pauseCooldown: 1 days,
            outflowWindow: 1 days,
            outflowShare: 2000,
            outflowDelay: 1 days,
            votesValidity: 2 days
        });
        fastPay = deploy(4, brakes);
        handler = new BrakesHandler(fastPay, guardian, this.keyOf);
        targetContract(address(handler));
        bytes4[] memory actions = new bytes4[](10);
        actions[0] = BrakesHandler.pass.selector;
        actions[1] = BrakesHandler.deposit.selector;
        actions[2] = BrakesHandler.redeem.selector;
        actions[3] = BrakesHandler.executeQueued.selector;
        actions[4] = BrakesHandler.claim.selector;
        actions[5] = BrakesHandler.rotate.selector;
        actions[6] = BrakesHandler.rotateWithoutAQuorum.selector;
        actions[7] = BrakesHandler.pause.selector;
        actions[8] = BrakesHandler.unpause.selector;
        actions[9] = BrakesHandler.donate.selector;
        targetSelector(FuzzSelector({addr: address(handler), selectors: actions}));
    }

    function keyOf(uint256 member) external pure returns (uint256) {
        return memberKey(member);
    }

    /// @dev Deposits = what left + what is still owed: as balance, as claims, and to those who wait.
    function invariant_NothingIsMadeOrLost() public view {
        for (uint256 i = 0; i < 2; ++i) {
            address asset = handler.assets(i);
            uint256 owed =
                fastPay.totalBalance(asset) + fastPay.totalClaims(asset) + fastPay.totalQueued(asset);
            assertEq(fastPay.totalBalance(asset), handler.deposited(asset) - handler.redeemed(asset));
            assertEq(handler.deposited(asset), owed + handler.left(asset));
            assertEq(_held(asset), owed + handler.donated(asset));
        }
    }

    /// @dev All that waits is somebody's, and all claims are.
    function invariant_WhatWaitsAndWhatIsClaimedAddsUp() public view {
        uint256[2] memory waits;
        for (uint256 i = 0; i < handler.numberWaiting(); ++i) {
            BrakesHandler.Waiting memory item = handler.waiting(i);
            waits[item.order.asset == ETHER ? 0 : 1] += item.order.amount;
            (uint256 executableAt, address by) = fastPay.queued(item.order.sender, item.order.sequence);
            assertEq(executableAt, item.executableAt);
            assertEq(by, item.relayer);
        }
        for (uint256 i = 0; i < 2; ++i) {
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

    /// @dev Of a bucket that holds a share and fills at a share a window, no stretch of time takes more than both.
    function invariant_NoMoreLeavesAtOnceThanTheLimit() public view {
        for (uint256 i = 0; i < 2; ++i) {
            BrakesHandler.Outflow[] memory all = handler.outflows(handler.assets(i));
            for (uint256 first = 0; first < all.length; ++first) {
                uint256 shares = 0; // in billionths
                for (uint256 last = first; last < all.length; ++last) {
                    shares += all[last].amount * 1e9 * 10_000 / (brakes.outflowShare * all[last].balance);
                    uint256 stretch = all[last].time - all[first].time;
                    assertLe(shares, 1e9 + 1e9 * stretch / brakes.outflowWindow);
                }
            }
        }
    }

    /// @dev A pause ends by itself, the next cannot follow at once, and only the guardian's were any.
    function invariant_PausesEnd() public view {
        assertEq(fastPay.pausedUntil(), handler.pausedUntil());
        assertEq(fastPay.nextPauseAt(), handler.nextPauseAt());
        assertLe(fastPay.pausedUntil(), handler.time() + brakes.pauseDuration);
        if (fastPay.pausedUntil() > 0) {
            assertEq(fastPay.nextPauseAt(), fastPay.pausedUntil() + brakes.pauseCooldown);
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
        }
    }

    /// @dev Whatever was done, in the end everything that waits and everything that is claimed can be paid.
    function afterInvariant() public {
        uint256 until = fastPay.pausedUntil();
        vm.warp((until > handler.time() ? until : handler.time()) + brakes.outflowDelay);
        for (uint256 i = 0; i < handler.numberWaiting(); ++i) {
            fastPay.executeQueued(handler.waiting(i).order);
        }
        for (uint256 i = 0; i < 2; ++i) {
            address asset = handler.assets(i);
            assertEq(fastPay.totalQueued(asset), 0);
            for (uint256 j = 0; j < 3; ++j) {
                address owner = handler.payees(j);
                if (fastPay.claimOf(owner, asset) == 0) continue;
                vm.prank(owner);
                fastPay.claimTo(asset, bob);
            }
            assertEq(fastPay.totalClaims(asset), 0);
        }
    }

    function _held(address asset) private view returns (uint256) {
        return asset == ETHER ? address(fastPay).balance : IERC20(asset).balanceOf(address(fastPay));
    }
}
