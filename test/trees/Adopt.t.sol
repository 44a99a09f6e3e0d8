// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract AdoptTreeTest is CouncilTest {
    bytes32 private constant CHECKPOINT = keccak256("a rebuilt checkpoint");

    function test_RevertGiven_TheEpochIsTheFirstOne() external {
        _fails(CHECKPOINT, abi.encodeWithSelector(ICouncil.NothingToAdopt.selector, 0));
    }

    function test_RevertGiven_TheEpochWasInstalledWithoutRecoveryAndNoKeysWereOut() external {
        _installSince(0);
        installEndorsed(announcementOfNext());
        _fails(CHECKPOINT, abi.encodeWithSelector(ICouncil.NothingToAdopt.selector, 2));
    }

    function test_RevertWhen_TheCheckpointIsZero() external {
        _installSince(0);
        _fails(0, abi.encodeWithSelector(ICouncil.ZeroCheckpoint.selector));
    }

    function test_RevertWhen_TheVotesAreNoQuorumOfTheCurrentEpoch() external {
        _installSince(0);
        bytes memory votes = votesIn(0, council.adoptionDigest(1, CHECKPOINT));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.adopt(CHECKPOINT, votes);
    }

    function test_RevertGiven_TheEpochAdoptedOneBefore() external {
        _installSince(0);
        _adopts();
        _fails(keccak256("another"), abi.encodeWithSelector(ICouncil.NothingToAdopt.selector, 1));
    }

    function test_GivenARecoveryInstalledTheEpoch() external {
        Announcement memory next = recoveryOfNext();
        install(next, mature(announceRecovery(next)));
        _adopts();
    }

    function test_GivenKeysWereOutBeforeTheEpoch() external {
        _installSince(0);
        _adopts();
    }

    function _installSince(uint64 since) private {
        Announcement memory next = announcementOfNext();
        next.compromisedSince = since;
        installEndorsed(next);
    }

    function _adopts() private {
        uint64 epoch = fastPay.epoch();
        bytes memory votes = votesIn(epoch, council.adoptionDigest(epoch, CHECKPOINT));
        vm.expectEmit(address(council));
        emit ICouncil.CheckpointAdopted(epoch, CHECKPOINT);
        vm.prank(relayer); // anyone
        council.adopt(CHECKPOINT, votes);
        assertEq(council.adopted(epoch), CHECKPOINT);
    }

    function _fails(bytes32 checkpoint, bytes memory revertData) private {
        uint64 epoch = fastPay.epoch();
        bytes memory votes = votesIn(epoch, council.adoptionDigest(epoch, checkpoint));
        vm.expectRevert(revertData);
        council.adopt(checkpoint, votes);
    }
}
