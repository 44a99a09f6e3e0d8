// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, CertifiedRedemption, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title One committee after another
contract RotationTest is FastPayTest {
    uint256 private constant VALIDITY = 7 days;

    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
    }

    // -------------------------------------------------------------------------------- what it does

    function test_BeginsTheNextEpoch() public {
        Authority[] memory next = authoritiesFrom(10, 7);
        bytes memory votes = votesOf(0, 3, fastPay.committeeVoteDigest(next, bob));
        vm.expectEmit(address(fastPay));
        emit IFastPay.CommitteeInstalled(1, next, bob, block.timestamp + VALIDITY);
        vm.prank(relayer); // anyone
        fastPay.rotate(next, bob, votes);

        assertEq(fastPay.epoch(), 1);
        assertEq(fastPay.guardian(), bob);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(next));
        assertEq(abi.encode(fastPay.committee(0)), abi.encode(authorities(4)));
        assertEq(fastPay.quorum(1), 5);
        assertEq(fastPay.quorum(0), 3);
        assertEq(fastPay.epochValidUntil(1), type(uint256).max);
        assertEq(fastPay.epochValidUntil(0), block.timestamp + VALIDITY);
        assertEq(fastPay.epochValidUntil(2), 0);
        assertEq(fastPay.lastTransactionIndex(), 1, "another part of the slot has changed");
        assertHolding(ETHER, 10 ether, 0);
    }

    function test_TheGuardianCanBecomeNobody() public {
        rotate(authoritiesFrom(10, 4), 0, address(0));
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
            rotate(authoritiesFrom(4 * uint256(epoch + 1), 4), 4 * uint256(epoch), guardian);
        }
        assertEq(fastPay.epoch(), 130);
        assertEq(vm.getNonce(address(fastPay)), 132);
        for (uint64 epoch = 0; epoch <= 130; epoch += 13) {
            bytes memory expected = abi.encode(authoritiesFrom(4 * uint256(epoch), 4));
            assertEq(abi.encode(fastPay.committee(epoch)), expected);
        }
    }

    function test_TheSameCommitteeMayStay() public {
        rotate(authorities(4), 0, guardian);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(authorities(4)));
    }

    function test_TheDigestIsThatOfEIP712() public view {
        Authority[] memory next = authorities(5);
        bytes32[] memory hashes = new bytes32[](5);
        for (uint256 i = 0; i < 5; ++i) {
            hashes[i] = vm.eip712HashStruct(
                "Authority(bytes32 votingKey,address redemptionKey)", abi.encode(next[i])
            );
        }
        bytes32 structHash = keccak256(
            abi.encode(
                keccak256(
                    "CommitteeVote(uint64 epoch,Authority[] authorities,address guardian)Authority(bytes32 votingKey,address redemptionKey)"
                ),
                uint64(1),
                keccak256(abi.encodePacked(hashes)),
                bob
            )
        );
        assertEq(fastPay.committeeVoteDigest(next, bob), digestOf(structHash));
    }

    // --------------------------------------------------------------------- votes of ended epochs

    function test_VotesOfThePreviousEpochCountUntilItsEndInclusive() public {
        CertifiedRedemption memory before = certified(redemption(ETHER, 1 ether, 0, 0));
        rotate(authoritiesFrom(10, 7), 0, guardian);
        uint256 end = fastPay.epochValidUntil(0);

        vm.warp(end + 1);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.EpochEnded.selector, 0, end));
        fastPay.redeem(before.redemption, 0, before.votes);

        vm.warp(end);
        fastPay.redeem(before.redemption, 0, before.votes);
        assertEq(bob.balance, 1 ether);
    }

    function test_VotesOfTheCurrentEpochCount() public {
        rotate(authoritiesFrom(10, 7), 0, guardian);
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        bytes memory votes = votesOf(10, 5, fastPay.redemptionVoteDigest(1, order));
        fastPay.redeem(order, 1, named(votes, 10));
        assertEq(bob.balance, 1 ether);
    }

    function test_BothEpochsInOneCall() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](4);
        items[0] = certified(redemption(ETHER, 1 ether, 0, 0));
        items[2] = certified(redemption(ETHER, 1 ether, 0, 2));
        rotate(authoritiesFrom(10, 7), 0, guardian);
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
        rotate(authoritiesFrom(10, 4), 0, guardian);
        rotate(authoritiesFrom(20, 4), 10, guardian);
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
        rotate(authoritiesFrom(10, 4), 0, guardian);
        rotate(authoritiesFrom(20, 4), 10, guardian);
        bytes memory votes = named(votesOf(20, 3, fastPay.redemptionBatchVoteDigest(2, batch)), 20);
        fastPay.redeemBatch(batch, 2, votes);
        assertEq(bob.balance, 1 ether);
    }

    function test_ARedeemedItemOfAnEndedEpochIsSkipped() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](1);
        items[0] = certified(redemption(ETHER, 1 ether, 0, 0));
        redeem(items[0].redemption);
        rotate(authoritiesFrom(10, 4), 0, guardian);
        rotate(authoritiesFrom(20, 4), 10, guardian);
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 0);
        fastPay.redeemMany(items);
    }

    function test_RevertIf_TheEpochIsUnknown() public {
        rotate(authoritiesFrom(10, 4), 0, guardian);
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

    // ------------------------------------------------------------------------------- which votes

    function test_RevertIf_TheVotesWereUsedBefore() public {
        Authority[] memory next = authorities(4);
        bytes memory votes = votesOf(0, 3, fastPay.committeeVoteDigest(next, guardian));
        fastPay.rotate(next, guardian, votes);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.rotate(next, guardian, votes);
    }

    function test_RevertIf_ThePreviousCommitteeVotes() public {
        rotate(authoritiesFrom(10, 4), 0, guardian);
        Authority[] memory next = authorities(4);
        bytes memory votes = votesOf(0, 3, fastPay.committeeVoteDigest(next, guardian));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.rotate(next, guardian, votes);
    }

    function test_RevertIf_TheVotesAreForAnotherCommittee() public {
        Authority[] memory next = authoritiesFrom(10, 4);
        bytes memory votes = votesOf(0, 3, fastPay.committeeVoteDigest(next, guardian));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.rotate(next, bob, votes);
        next[3].redemptionKey = bob;
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.rotate(next, guardian, votes);
    }

    function test_RevertIf_TheVotesAreNoQuorum() public {
        Authority[] memory next = authoritiesFrom(10, 4);
        bytes32 digest = fastPay.committeeVoteDigest(next, guardian);
        uint256 whole = type(uint256).max;
        vm.expectRevert(abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, whole, 132, 198));
        fastPay.rotate(next, guardian, votesOf(0, 2, digest));
        bytes memory twice = bytes.concat(votesOf(0, 2, digest), votesOf(1, 1, digest));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.VotesNotAscending.selector, whole, 2, 1));
        fastPay.rotate(next, guardian, twice);
        assertEq(fastPay.epoch(), 0);
    }

    // --------------------------------------------------------------------------- which committees

    function test_RevertIf_TheNextCommitteeIsTooSmallOrTooLarge() public {
        _refused(authorities(3), abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 3));
        _refused(authorities(256), abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 256));
    }

    function test_RevertIf_AKeyOfTheNextCommitteeIsZeroOrRepeatedOrUnsorted() public {
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

    function test_TheLargestCommitteeRotates() public {
        fastPay = deploy(255);
        Authority[] memory next = authorities(255);
        bytes memory votes = votesOf(0, 170, fastPay.committeeVoteDigest(next, guardian));
        fastPay.rotate(next, guardian, votes);
        assertLt(vm.lastCallGas().gasTotalUsed, 16_000_000); // a transaction may take 2^24
        assertEq(fastPay.quorum(1), 170);
    }

    function test_APauseNeitherStopsARotationNorEndsByIt() public {
        vm.prank(guardian);
        fastPay.pause();
        (uint256 until, uint256 nextAt) = (fastPay.pausedUntil(), fastPay.nextPauseAt());
        rotate(authoritiesFrom(10, 4), 0, bob);
        assertEq(fastPay.pausedUntil(), until);
        assertEq(fastPay.nextPauseAt(), nextAt);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, guardian));
        vm.prank(guardian);
        fastPay.unpause();
        vm.prank(bob); // the pause is the new guardian's to end
        fastPay.unpause();
        assertEq(fastPay.pausedUntil(), block.timestamp);
    }

    function _refused(Authority[] memory next, bytes memory revertData) private {
        bytes memory votes = votesOf(0, 3, fastPay.committeeVoteDigest(next, guardian));
        vm.expectRevert(revertData);
        fastPay.rotate(next, guardian, votes);
        assertEq(fastPay.epoch(), 0);
    }
}
