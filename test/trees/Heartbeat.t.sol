// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract HeartbeatTreeTest is CouncilTest {
    function test_RevertWhen_TheHashOfTheBlockIsNotKnown() external {
        bytes memory votes = votesIn(0, council.heartbeatDigest(0, blockhash(1)));
        vm.expectRevert(abi.encodeWithSelector(ICouncil.UnknownBlock.selector, 1));
        council.heartbeat(1, votes);
    }

    function test_RevertWhen_TheVotesAreNoQuorumOfTheCurrentEpoch() external {
        bytes memory votes = votesIn(0, council.heartbeatDigest(0, blockhash(998)));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.heartbeat(999, votes);
    }

    function test_GivenARecoveryWasAnnounced() external {
        Announcement memory next = recoveryOfNext();
        bytes32 id = announceRecovery(next);
        wait(NOTICE - 1);
        heartbeat();
        wait(1);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
        council.mature(id);
        bytes memory proofs = proofsOf(1);
        uint256 silentAt = vm.getBlockTimestamp() - 1 + SILENCE;
        vm.expectRevert(abi.encodeWithSelector(ICouncil.CommitteeAlive.selector, silentAt));
        vm.prank(recovery);
        council.announceRecovery(next, proofs);
    }

    function test_GivenTheContractIsPaused() external {
        pause();
        assertEq(council.lastHeartbeat(), 0);
        vm.expectEmit(address(council));
        emit ICouncil.HeartbeatReceived(0);
        heartbeat();
        assertEq(council.lastHeartbeat(), vm.getBlockTimestamp());
    }
}
