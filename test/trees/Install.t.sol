// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract InstallTreeTest is CouncilTest {
    function test_RevertWhen_TheCallerIsNotTheCouncil() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotCouncil.selector, guardian));
        vm.prank(guardian);
        fastPay.install(committeeOf(1), guardian, 1, 0);
    }

    function test_RevertWhen_TheCommitteeIsTooSmall() external {
        _fails(authorities(3), abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 3));
    }

    function test_RevertWhen_AKeyIsZero() external {
        Authority[] memory next = authorities(4);
        next[1].redemptionKey = address(0);
        _fails(next, abi.encodeWithSelector(IFastPay.ZeroKey.selector, 1));
        next = authorities(4);
        next[0].votingKey = 0;
        _fails(next, abi.encodeWithSelector(IFastPay.ZeroKey.selector, 0));
    }

    function test_RevertWhen_TheVotingKeysAreNotAscending() external {
        Authority[] memory next = authorities(4);
        next[2].votingKey = next[1].votingKey;
        _fails(next, abi.encodeWithSelector(IFastPay.VotingKeysNotAscending.selector, 2));
        (next[1].votingKey, next[2].votingKey) = (next[3].votingKey, next[0].votingKey);
        _fails(next, abi.encodeWithSelector(IFastPay.VotingKeysNotAscending.selector, 2));
    }

    function test_RevertWhen_TwoMembersHaveTheSameRedemptionKey() external {
        Authority[] memory next = authorities(4);
        next[3].redemptionKey = next[1].redemptionKey;
        _fails(next, abi.encodeWithSelector(IFastPay.RepeatedRedemptionKey.selector, 1, 3));
    }

    function test_WhenNoKeysWereOut() external {
        (Authority[] memory next, uint256 end) = (authoritiesFrom(10, 7), vm.getBlockTimestamp() + 14 days);
        bytes32 checkpoint = keccak256("checkpoint");
        vm.expectEmit(address(fastPay));
        emit IFastPay.CommitteeInstalled(2, 1, next, bob, end, 1, checkpoint);
        vm.prank(address(council));
        fastPay.install(next, bob, 1, checkpoint);
        assertEq(fastPay.guardian(), bob);
        assertEq(fastPay.quorum(1), 5);
        assertEq(fastPay.quorum(0), 3);
        assertEq(fastPay.epochValidUntil(0), end);
        assertFalse(fastPay.compromised(0));
        assertEq(fastPay.lastTransactionIndex(), 2);
        assertHolding(ETHER, HELD, 0);
    }

    function test_WhenKeysWereOut() external {
        // Epochs 0 to 599, without having installed each.
        bytes32 slot = bytes32(uint256(3));
        vm.store(address(fastPay), slot, vm.load(address(fastPay), slot) | bytes32(uint256(599) << 48));
        vm.setNonce(address(fastPay), 601);
        vm.prank(address(council));
        fastPay.install(committeeOf(1), guardian, 200, 0);
        assertEq(fastPay.epochValidUntil(599), 0);
        uint64[8] memory out = [uint64(200), 255, 256, 300, 511, 512, 598, 599];
        for (uint256 i = 0; i < out.length; ++i) {
            assertTrue(fastPay.compromised(out[i]));
        }
        uint64[4] memory kept = [uint64(0), 199, 600, 601];
        for (uint256 i = 0; i < kept.length; ++i) {
            assertFalse(fastPay.compromised(kept[i]));
        }
    }

    function _fails(Authority[] memory next, bytes memory revertData) private {
        vm.prank(address(council));
        vm.expectRevert(revertData);
        fastPay.install(next, guardian, 1, 0);
    }
}
