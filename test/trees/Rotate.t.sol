// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract RotateTreeTest is TreeTest {
    uint256 private constant WHOLE_CALL = type(uint256).max;

    function test_RevertWhen_TheVotesAreNoQuorumOfTheCurrentEpoch() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, WHOLE_CALL, 0, 198));
        fastPay.rotate(committeeOf(1), guardian, "");
    }

    function test_RevertWhen_TheVotesAreOfThePreviousEpoch() external {
        rotate();
        Authority[] memory next = committeeOf(2);
        _failsAsNotSigned(next, guardian, votesIn(0, fastPay.committeeVoteDigest(next, guardian)));
    }

    function test_RevertWhen_TheVotesWereUsedForTheRotationBefore() external {
        // Back to the same members: the votes for them are not for the next epoch.
        Authority[] memory same = committeeOf(0);
        bytes memory votes = votesIn(0, fastPay.committeeVoteDigest(same, guardian));
        fastPay.rotate(same, guardian, votes);
        _failsAsNotSigned(same, guardian, votes);
    }

    function test_RevertWhen_TheVotesAreForAnotherGuardian() external {
        Authority[] memory next = committeeOf(1);
        _failsAsNotSigned(next, alice, votesIn(0, fastPay.committeeVoteDigest(next, guardian)));
    }

    function test_RevertWhen_TheVotesAreForAnotherCommittee() external {
        Authority[] memory next = committeeOf(1);
        bytes memory votes = votesIn(0, fastPay.committeeVoteDigest(next, guardian));
        next[3].redemptionKey = alice;
        _failsAsNotSigned(next, guardian, votes);
    }

    function test_RevertWhen_TheCommitteeHasLessThanFourMembers() external {
        _failsAsUnsound(authorities(3), abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 3));
    }

    function test_RevertWhen_TheCommitteeHasMoreThan255Members() external {
        _failsAsUnsound(
            new Authority[](256), abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 256)
        );
    }

    function test_RevertWhen_AKeyIsZero() external {
        Authority[] memory next = committeeOf(1);
        next[2].redemptionKey = address(0);
        _failsAsUnsound(next, abi.encodeWithSelector(IFastPay.ZeroKey.selector, 2));
    }

    function test_RevertWhen_TheVotingKeysDoNotAscend() external {
        Authority[] memory next = committeeOf(1);
        next[2].votingKey = next[1].votingKey;
        _failsAsUnsound(next, abi.encodeWithSelector(IFastPay.VotingKeysNotAscending.selector, 2));
    }

    function test_RevertWhen_ARedemptionKeyComesTwice() external {
        Authority[] memory next = committeeOf(1);
        next[2].redemptionKey = next[1].redemptionKey;
        _failsAsUnsound(next, abi.encodeWithSelector(IFastPay.RepeatedRedemptionKey.selector, 1, 2));
    }

    function test_GivenTheContractIsPaused() external {
        pause();
        (uint256 until, uint256 nextAt) = (fastPay.pausedUntil(), fastPay.nextPauseAt());
        rotate();
        assertEq(fastPay.epoch(), 1);
        assertEq(fastPay.pausedUntil(), until);
        assertEq(fastPay.nextPauseAt(), nextAt);
    }

    function test_Given128EpochsHavePassed() external {
        // From here on the number in the rule for a committee's address takes more than one byte.
        for (uint64 epoch = 0; epoch < 130; ++epoch) {
            rotate();
        }
        assertEq(fastPay.epoch(), 130);
        assertEq(abi.encode(fastPay.committee(130)), abi.encode(committeeOf(130)));
        assertEq(abi.encode(fastPay.committee(126)), abi.encode(committeeOf(126)));
    }

    function test_WhenTheCommitteeIsSound() external {
        rotate();
        Authority[] memory next = committeeOf(2);
        bytes memory votes = votesIn(1, fastPay.committeeVoteDigest(next, alice));
        uint256 end = vm.getBlockTimestamp() + 7 days;
        vm.expectEmit(address(fastPay));
        emit IFastPay.CommitteeInstalled(2, next, alice, end);
        fastPay.rotate(next, alice, votes);
        assertEq(fastPay.epoch(), 2);
        assertEq(fastPay.guardian(), alice);
        assertEq(fastPay.epochValidUntil(1), end);
        assertEq(fastPay.epochValidUntil(0), 0);
        for (uint64 epoch = 0; epoch < 3; ++epoch) {
            assertEq(abi.encode(fastPay.committee(epoch)), abi.encode(committeeOf(epoch)));
        }
    }

    function _failsAsNotSigned(Authority[] memory next, address guardian_, bytes memory votes) private {
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.rotate(next, guardian_, votes);
    }

    /// @dev Though a quorum voted for it.
    function _failsAsUnsound(Authority[] memory next, bytes memory revertData) private {
        bytes memory votes = votesIn(0, fastPay.committeeVoteDigest(next, guardian));
        vm.expectRevert(revertData);
        fastPay.rotate(next, guardian, votes);
        assertEq(fastPay.epoch(), 0);
    }
}
