// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CapRaise, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract AnnounceCapTreeTest is CouncilTest {
    function test_RevertWhen_TheEpochIsNotTheCurrentOne() external {
        CapRaise memory raise = raiseTo(2000 ether);
        raise.epoch = 1;
        _fails(raise, abi.encodeWithSelector(ICouncil.WrongEpoch.selector, 1, 0));
    }

    function test_RevertWhen_TheDeadlineHasPassed() external {
        CapRaise memory raise = raiseTo(2000 ether);
        uint256 latest = raise.deadline + 1 + 30 days;
        vm.warp(raise.deadline + 1);
        _fails(raise, abi.encodeWithSelector(ICouncil.InvalidDeadline.selector, raise.deadline, latest));
    }

    function test_RevertGiven_TheSameWasAnnouncedBefore() external {
        CapRaise memory raise = raiseTo(2000 ether);
        bytes32 id = announceCap(raise);
        _fails(raise, abi.encodeWithSelector(ICouncil.AlreadyAnnounced.selector, id));
    }

    function test_RevertWhen_TheVotesAreNoQuorumOfTheCurrentEpoch() external {
        CapRaise memory raise = raiseTo(2000 ether);
        bytes memory votes = votesIn(0, council.capRaiseDigest(raise));
        raise.cap += 1;
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.announceCap(raise, votes);
    }

    function test_WhenAQuorumAnnounces() external {
        CapRaise memory raise = raiseTo(2000 ether);
        bytes32 id = council.capRaiseDigest(raise);
        vm.expectEmit(address(council));
        emit ICouncil.CapAnnounced(id, raise);
        announceCap(raise);
        (uint64 epoch, uint256 announcedAt,, uint256 installableAt,,, bool isRecovery) = council.clockOf(id);
        assertEq(epoch, 1); // whose beginning ends it
        assertEq(announcedAt, vm.getBlockTimestamp());
        assertEq(installableAt, announcedAt + LONG);
        assertFalse(isRecovery);
        assertEq(fastPay.depositCap(ETHER), ETHER_CAP_SET);
    }

    function _fails(CapRaise memory raise, bytes memory revertData) private {
        bytes memory votes = votesIn(0, council.capRaiseDigest(raise));
        vm.expectRevert(revertData);
        council.announceCap(raise, votes);
    }
}
