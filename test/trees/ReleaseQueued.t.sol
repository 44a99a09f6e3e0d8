// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract ReleaseQueuedTreeTest is CouncilTest {
    Redemption private _waiting;

    function setUp() public override {
        super.setUp();
        _waiting = enqueue(0);
        vm.prank(address(council));
        fastPay.install(committeeOf(1), guardian, 0, 0);
    }

    function test_RevertGiven_NothingWaitsUnderTheNumber() external {
        _fails(order(1 ether, 9), abi.encodeWithSelector(IFastPay.NotQueued.selector, ACCOUNT, 9));
    }

    function test_RevertGiven_AnotherRedemptionWaitsUnderTheNumber() external {
        Redemption memory other = _waiting;
        other.memo = keccak256("another");
        _fails(other, abi.encodeWithSelector(IFastPay.NotQueued.selector, ACCOUNT, 0));
    }

    function test_RevertGiven_ItsEpochIsNotCompromised() external {
        Redemption memory sound = order(2 * LIMIT, 1);
        bytes memory votes = certifyIn(1, sound);
        fastPay.redeem(sound, 1, votes);
        _fails(sound, abi.encodeWithSelector(IFastPay.EpochNotCompromised.selector, 1));
    }

    function test_RevertWhen_TheVotesAreNoQuorumOfTheCurrentEpoch() external {
        bytes memory old = votesIn(0, fastPay.releaseVoteDigest(1, _waiting));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.releaseQueued(_waiting, old);
        // Votes to pay it are none to release it.
        bytes memory others = certifyIn(1, _waiting);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.releaseQueued(_waiting, others);
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        fastPay.releaseQueued(_waiting, "");
    }

    function test_GivenTheContractIsPaused() external {
        bytes memory votes = _votes(_waiting);
        pause();
        fastPay.releaseQueued(_waiting, votes);
        assertEq(fastPay.totalQueued(ETHER), 0);
    }

    function test_WhenAQuorumOfTheCurrentEpochReleases() external {
        bytes memory votes = _votes(_waiting);
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionReleased(ACCOUNT, 4, 0, orderDigest(_waiting));
        vm.prank(relayer); // anyone
        fastPay.releaseQueued(_waiting, votes);
        (uint256 executableAt, address by, uint64 epoch, bool needsVotes) = fastPay.queued(ACCOUNT, 0);
        assertEq(executableAt + epoch, 0);
        assertEq(by, address(0));
        assertFalse(needsVotes);
        assertEq(fastPay.totalQueued(ETHER), 0);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 0));
        assertHolding(ETHER, HELD, 0);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotQueued.selector, ACCOUNT, 0));
        fastPay.releaseQueued(_waiting, votes);
    }

    function _votes(Redemption memory item) private view returns (bytes memory) {
        return votesIn(1, fastPay.releaseVoteDigest(1, item));
    }

    function _fails(Redemption memory item, bytes memory revertData) private {
        bytes memory votes = _votes(item);
        vm.expectRevert(revertData);
        fastPay.releaseQueued(item, votes);
    }
}
