// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title The guardian's pause: bounded, and with a cool-down
contract PauseTest is FastPayTest {
    uint256 private constant DURATION = 1 days;
    uint256 private constant COOLDOWN = 7 days;

    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
    }

    function test_ThePauseEndsByItself() public {
        uint256 until = block.timestamp + DURATION;
        vm.expectEmit(address(fastPay));
        emit IFastPay.Paused(until);
        _pause();
        assertEq(fastPay.pausedUntil(), until);
        assertEq(fastPay.nextPauseAt(), until + COOLDOWN);

        vm.warp(until - 1);
        _depositFails(until);
        vm.warp(until);
        fundEther(1 ether);
        assertHolding(ETHER, 11 ether, 0);
    }

    function test_TheGuardianEndsThePause() public {
        _pause();
        skip(100);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Unpaused();
        vm.prank(guardian);
        fastPay.unpause();
        assertEq(fastPay.pausedUntil(), block.timestamp);
        assertEq(fastPay.nextPauseAt(), block.timestamp + COOLDOWN);
        fundEther(1 ether);
    }

    function test_EverythingThatMovesValueStops() public {
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        CertifiedRedemption[] memory many = new CertifiedRedemption[](1);
        many[0] = certified(order);
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = order;
        bytes memory batchVotes = votesOf(0, 3, fastPay.redemptionBatchVoteDigest(0, batch));
        token.transfer(alice, 10);
        vm.prank(alice);
        token.approve(address(fastPay), 10);
        _pause();
        bytes[8] memory calls = [
            abi.encodeCall(IFastPay.depositEther, (ACCOUNT)),
            abi.encodeCall(IFastPay.depositToken, (ACCOUNT, token, 1)),
            abi.encodeCall(IFastPay.redeem, (order, 0, many[0].votes)),
            abi.encodeCall(IFastPay.redeemMany, (many)),
            abi.encodeCall(IFastPay.redeemBatch, (batch, 0, batchVotes)),
            abi.encodeCall(IFastPay.executeQueued, (order, "")),
            abi.encodeCall(IFastPay.claim, (ETHER, bob, 1)),
            abi.encodeCall(IFastPay.claimFor, (bob, ETHER, 1))
        ];
        bytes memory expected = abi.encodeWithSelector(IFastPay.PausedUntil.selector, fastPay.pausedUntil());
        for (uint256 i = 0; i < calls.length; ++i) {
            vm.prank(alice, alice);
            (bool success, bytes memory answer) = address(fastPay).call(calls[i]);
            assertFalse(success, vm.toString(i));
            assertEq(answer, expected, vm.toString(i));
        }
        vm.deal(alice, 1 ether);
        vm.prank(alice, alice);
        (bool sent, bytes memory reason) = address(fastPay).call{value: 1 ether}("");
        assertFalse(sent);
        assertEq(reason, expected);
        vm.prank(alice); // the allowance of before stands in for the permit
        vm.expectRevert(expected);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 1, block.timestamp, 27, 0, 0);
        assertHolding(ETHER, 10 ether, 0);

        // Views go on, and so does all of it after the pause.
        assertEq(fastPay.totalBalance(ETHER), 10 ether);
        skip(DURATION);
        fastPay.redeem(order, 0, many[0].votes);
        assertEq(bob.balance, 1 ether);
    }

    function test_RevertIf_TheCooldownOfAShortenedPauseIsNotOver() public {
        _pause();
        skip(10);
        vm.prank(guardian);
        fastPay.unpause();
        uint256 nextAt = block.timestamp + COOLDOWN;
        _pauseFails(nextAt);
        vm.warp(nextAt - 1);
        _pauseFails(nextAt);
        vm.warp(nextAt);
        _pause();
    }

    function test_PausesLeaveTheOtherPartsOfTheStateAlone() public {
        rotate(authoritiesFrom(10, 4), guardian);
        uint256 validUntil = fastPay.epochValidUntil(0);
        fundEther(1 ether);
        _pause();
        assertEq(fastPay.epoch(), 1);
        assertEq(fastPay.epochValidUntil(0), validUntil);
        assertEq(fastPay.lastTransactionIndex(), 3);
    }

    /// @dev However the guardian plays, the contract runs at least as long as the cool-down between two pauses.
    function testFuzz_ItRunsBetweenPauses(uint256 seed) public {
        uint256 lastEnd = 0;
        for (uint256 i = 0; i < 20; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            skip(seed % 3 days);
            vm.prank(guardian);
            if (seed & (1 << 200) == 0) {
                try fastPay.unpause() {
                    lastEnd = block.timestamp;
                } catch {}
                continue;
            }
            try fastPay.pause() {
                assertTrue(lastEnd == 0 || block.timestamp >= lastEnd + COOLDOWN, "too early");
                assertEq(fastPay.pausedUntil(), block.timestamp + DURATION);
                lastEnd = block.timestamp + DURATION;
            } catch {}
        }
    }

    function _pause() private {
        vm.prank(guardian);
        fastPay.pause();
    }

    function _pauseFails(uint256 nextAt) private {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PauseTooEarly.selector, nextAt));
        vm.prank(guardian);
        fastPay.pause();
    }

    function _depositFails(uint256 until) private {
        vm.deal(alice, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PausedUntil.selector, until));
        vm.prank(alice);
        fastPay.depositEther{value: 1 ether}(ACCOUNT);
    }
}
