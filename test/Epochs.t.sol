// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, CertifiedRedemption, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title One epoch after another, as FastPay sees it
contract EpochsTest is FastPayTest {
    uint256 private constant VALIDITY = 14 days;

    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
    }

    // -------------------------------------------------------------------------------- what it does

    function test_BeginsTheNextEpoch() public {
        Authority[] memory next = authoritiesFrom(10, 7);
        vm.expectEmit(address(fastPay));
        emit IFastPay.CommitteeInstalled(
            2, 1, next, bob, block.timestamp + VALIDITY, 1, keccak256("checkpoint")
        );
        vm.prank(address(fastPay.council()));
        fastPay.install(next, bob, 1, keccak256("checkpoint"));

        assertEq(fastPay.epoch(), 1);
        assertEq(fastPay.guardian(), bob);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(next));
        assertEq(abi.encode(fastPay.committee(0)), abi.encode(authorities(4)));
        assertEq(fastPay.quorum(1), 5);
        assertEq(fastPay.quorum(0), 3);
        assertEq(fastPay.epochValidUntil(1), type(uint256).max);
        assertEq(fastPay.epochValidUntil(0), block.timestamp + VALIDITY);
        assertEq(fastPay.epochValidUntil(2), 0);
        assertEq(fastPay.lastTransactionIndex(), 2);
        assertFalse(fastPay.compromised(0));
        assertHolding(ETHER, 10 ether, 0);
    }

    function test_TheGuardianCanBecomeNobody() public {
        rotate(authoritiesFrom(10, 4), address(0));
        assertEq(fastPay.guardian(), address(0));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, guardian));
        vm.prank(guardian);
        fastPay.pause();
    }

    /// @dev The contract computes where a committee is from the number of contracts that it has created.
    function test_EveryCommitteeIsWhereItsEpochSays() public {
        for (uint64 epoch = 0; epoch < 130; ++epoch) {
            address code = vm.computeCreateAddress(address(fastPay), epoch + 1);
            assertEq(code.code.length, 1 + 4 * 64);
            assertEq(uint8(code.code[0]), 0, "the keys could run");
            rotate(authoritiesFrom(4 * uint256(epoch + 1), 4), guardian);
        }
        assertEq(fastPay.epoch(), 130);
        assertEq(vm.getNonce(address(fastPay)), 132);
        for (uint64 epoch = 0; epoch <= 130; epoch += 13) {
            bytes memory expected = abi.encode(authoritiesFrom(4 * uint256(epoch), 4));
            assertEq(abi.encode(fastPay.committee(epoch)), expected);
        }
    }

    function test_TheSameCommitteeMayStay() public {
        rotate(authorities(4), guardian);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(authorities(4)));
    }

    // --------------------------------------------------------------------- votes of ended epochs

    function test_VotesOfThePreviousEpochCountUntilItsEndInclusive() public {
        CertifiedRedemption memory before = certified(redemption(ETHER, 1 ether, 0, 0));
        rotate(authoritiesFrom(10, 7), guardian);
        uint256 end = fastPay.epochValidUntil(0);

        vm.warp(end + 1);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.EpochEnded.selector, 0, end));
        fastPay.redeem(before.redemption, 0, before.votes);

        vm.warp(end);
        fastPay.redeem(before.redemption, 0, before.votes);
        assertEq(bob.balance, 1 ether);
    }

    function test_VotesOfTheCurrentEpochCount() public {
        rotate(authoritiesFrom(10, 7), guardian);
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        bytes memory votes = votesOf(10, 5, fastPay.redemptionVoteDigest(1, order));
        fastPay.redeem(order, 1, named(votes, 10));
        assertEq(bob.balance, 1 ether);
    }

    function test_BothEpochsInOneCall() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](4);
        items[0] = certified(redemption(ETHER, 1 ether, 0, 0));
        items[2] = certified(redemption(ETHER, 1 ether, 0, 2));
        rotate(authoritiesFrom(10, 7), guardian);
        for (uint64 i = 1; i < 4; i += 2) {
            Redemption memory order = redemption(ETHER, 1 ether, 0, i);
            bytes memory votes = named(votesOf(10, 5, fastPay.redemptionVoteDigest(1, order)), 10);
            items[i] = CertifiedRedemption({redemption: order, epoch: 1, votes: votes});
        }
        fastPay.redeemMany(items);
        assertEq(bob.balance, 4 ether);
    }

    function test_RevertIf_AnEpochIsTwoRotationsOld() public {
        CertifiedRedemption memory before = certified(redemption(ETHER, 1 ether, 0, 0));
        rotate(authoritiesFrom(10, 4), guardian);
        rotate(authoritiesFrom(20, 4), guardian);
        assertEq(fastPay.epochValidUntil(0), 0);
        assertEq(fastPay.epochValidUntil(1), block.timestamp + VALIDITY);
        bytes memory ended = abi.encodeWithSelector(IFastPay.EpochEnded.selector, 0, 0);
        vm.expectRevert(ended);
        fastPay.redeem(before.redemption, 0, before.votes);
        CertifiedRedemption[] memory items = new CertifiedRedemption[](1);
        items[0] = before;
        vm.expectRevert(ended);
        fastPay.redeemMany(items);
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = before.redemption;
        vm.expectRevert(ended);
        fastPay.redeemBatch(batch, 0, before.votes);
    }

    /// @dev Nothing is stranded: the current committee votes again, in a batch of one.
    function test_ARedemptionOfAnEndedEpochIsVotedForAgain() public {
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = redemption(ETHER, 1 ether, 0, 0);
        rotate(authoritiesFrom(10, 4), guardian);
        rotate(authoritiesFrom(20, 4), guardian);
        bytes memory votes = named(votesOf(20, 3, fastPay.redemptionBatchVoteDigest(2, batch)), 20);
        fastPay.redeemBatch(batch, 2, votes);
        assertEq(bob.balance, 1 ether);
    }

    function test_ARedeemedItemOfAnEndedEpochIsSkipped() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](1);
        items[0] = certified(redemption(ETHER, 1 ether, 0, 0));
        redeem(items[0].redemption);
        rotate(authoritiesFrom(10, 4), guardian);
        rotate(authoritiesFrom(20, 4), guardian);
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 0);
        fastPay.redeemMany(items);
    }

    function test_RevertIf_TheEpochIsUnknown() public {
        rotate(authoritiesFrom(10, 4), guardian);
        bytes memory unknown = abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 2);
        vm.expectRevert(unknown);
        fastPay.committee(2);
        vm.expectRevert(unknown);
        fastPay.quorum(2);
        vm.expectRevert(unknown);
        fastPay.redeem(redemption(ETHER, 1, 0, 0), 2, "");
        vm.expectRevert(abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, type(uint64).max));
        fastPay.redeem(redemption(ETHER, 1, 0, 0), type(uint64).max, "");
    }

    // ------------------------------------------------------------------------- compromised epochs

    function test_VotesOfACompromisedEpochEndAtOnce() public {
        CertifiedRedemption memory before = certified(redemption(ETHER, 1 ether, 0, 0));
        _installSince(0, 1);
        assertTrue(fastPay.compromised(0));
        assertFalse(fastPay.compromised(1));
        assertEq(fastPay.epochValidUntil(0), 0);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.EpochEnded.selector, 0, 0));
        fastPay.redeem(before.redemption, 0, before.votes);
    }

    /// @dev The epochs from the first to before the current one, over the words that they are kept in.
    function testFuzz_TheEpochsSinceAreCompromised(uint256 epochs, uint256 since) public {
        epochs = bound(epochs, 1, 520);
        since = bound(since, 0, epochs);
        // Epochs that nobody installed one by one.
        bytes32 state = vm.load(address(fastPay), bytes32(uint256(3)));
        vm.store(address(fastPay), bytes32(uint256(3)), state | bytes32((epochs - 1) << 48));
        vm.setNonce(address(fastPay), uint64(epochs + 1));
        _installSince(uint64(since), 1);
        assertEq(fastPay.epoch(), epochs);
        for (uint64 epoch = 0; epoch < epochs + 2; ++epoch) {
            assertEq(fastPay.compromised(epoch), epoch >= since && epoch < epochs, vm.toString(epoch));
        }
    }

    function test_WhatWasCompromisedStays() public {
        _installSince(0, 1);
        _installSince(2, 2);
        assertTrue(fastPay.compromised(0));
        assertFalse(fastPay.compromised(1));
        _installSince(1, 3);
        assertTrue(fastPay.compromised(0) && fastPay.compromised(1) && fastPay.compromised(2));
    }

    // ------------------------------------------------------------------------------- restricted

    function test_RevertIf_AnotherThanTheCouncilInstalls() public {
        address[4] memory callers = [alice, guardian, recovery, address(fastPay)];
        for (uint256 i = 0; i < callers.length; ++i) {
            bytes memory refused = abi.encodeWithSelector(IFastPay.NotCouncil.selector, callers[i]);
            vm.startPrank(callers[i]);
            vm.expectRevert(refused);
            fastPay.install(authorities(4), guardian, 1, 0);
            vm.expectRevert(refused);
            fastPay.setCap(ETHER, 1);
            vm.expectRevert(refused);
            fastPay.requestUnlock(ACCOUNT, 0, 0, "");
            vm.expectRevert(refused);
            fastPay.uphold(ACCOUNT, 0, 0);
            vm.expectRevert(refused);
            fastPay.void(ACCOUNT, 0);
            vm.stopPrank();
        }
    }

    function test_RevertIf_TheNextCommitteeIsUnsound() public {
        _refused(authorities(3), abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 3));
        _refused(authorities(256), abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 256));
        Authority[] memory next = authorities(4);
        next[1].redemptionKey = address(0);
        _refused(next, abi.encodeWithSelector(IFastPay.ZeroKey.selector, 1));
        next = authorities(4);
        next[0].votingKey = 0;
        _refused(next, abi.encodeWithSelector(IFastPay.ZeroKey.selector, 0));
        next = authorities(4);
        next[3].redemptionKey = next[1].redemptionKey;
        _refused(next, abi.encodeWithSelector(IFastPay.RepeatedRedemptionKey.selector, 1, 3));
        next = authorities(4);
        next[2].votingKey = next[1].votingKey;
        _refused(next, abi.encodeWithSelector(IFastPay.VotingKeysNotAscending.selector, 2));
    }

    function test_APauseNeitherStopsAnInstallationNorEndsByIt() public {
        vm.prank(guardian);
        fastPay.pause();
        (uint256 until, uint256 nextAt) = (fastPay.pausedUntil(), fastPay.nextPauseAt());
        rotate(authoritiesFrom(10, 4), bob);
        assertEq(fastPay.pausedUntil(), until);
        assertEq(fastPay.nextPauseAt(), nextAt);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, guardian));
        vm.prank(guardian);
        fastPay.unpause();
        vm.prank(bob); // the pause is the new guardian's to end
        fastPay.unpause();
        assertEq(fastPay.pausedUntil(), block.timestamp);
    }

    // ----------------------------------------------------------------------------- unlocking's events

    function test_UnlockingHasItsPlaceInTheOrder() public {
        vm.startPrank(address(fastPay.council()));
        vm.expectEmit(address(fastPay));
        emit IFastPay.UnlockRequested(2, ACCOUNT, 7, 1234, "signed");
        fastPay.requestUnlock(ACCOUNT, 7, 1234, "signed");
        vm.expectEmit(address(fastPay));
        emit IFastPay.SequenceUpheld(3, ACCOUNT, 7, keccak256("an order"));
        fastPay.uphold(ACCOUNT, 7, keccak256("an order"));
        assertFalse(fastPay.isRedeemed(ACCOUNT, 7));
        vm.expectEmit(address(fastPay));
        emit IFastPay.SequenceVoided(4, ACCOUNT, 8);
        fastPay.void(ACCOUNT, 8);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 8));
        assertEq(fastPay.lastTransactionIndex(), 4);
        vm.stopPrank();
        redeemFails(
            redemption(ETHER, 1 ether, 0, 8),
            abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 8)
        );
        redeem(redemption(ETHER, 1 ether, 0, 7));
        vm.prank(address(fastPay.council()));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.SequenceSpent.selector, ACCOUNT, 7));
        fastPay.void(ACCOUNT, 7);
    }

    function _installSince(uint64 since, uint256 first) private {
        Authority[] memory next = authoritiesFrom(10 * first, 4);
        vm.prank(address(fastPay.council()));
        fastPay.install(next, guardian, since, 0);
    }

    function _refused(Authority[] memory next, bytes memory revertData) private {
        vm.prank(address(fastPay.council()));
        vm.expectRevert(revertData);
        fastPay.install(next, guardian, 1, 0);
        assertEq(fastPay.epoch(), 0);
    }
}
