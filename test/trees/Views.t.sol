// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract ViewsTreeTest is TreeTest {
    function test_Committee_RevertWhen_TheEpochHasNoCommittee() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));
        fastPay.committee(1);
    }

    function test_Committee_WhenTheEpochHasEnded() external {
        rotate();
        rotate();
        assertEq(abi.encode(fastPay.committee(0)), abi.encode(committeeOf(0)));
    }

    function test_Committee_WhenTheEpochIsTheCurrentOne() external {
        rotate();
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(committeeOf(1)));
    }

    function test_Quorum_RevertWhen_TheEpochHasNoCommittee() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, type(uint64).max));
        fastPay.quorum(type(uint64).max);
    }

    function test_Quorum_WhenTheEpochHasACommittee() external {
        for (uint256 size = 4; size <= 40; ++size) {
            uint256 faulty = (size - 1) / 3;
            uint256 least = 1;
            while (2 * least <= size + faulty) ++least;
            assertEq(deploy(size).quorum(0), least);
        }
    }

    function test_EpochValidUntil_WhenTheEpochIsTheCurrentOne() external view {
        assertEq(fastPay.epochValidUntil(0), type(uint256).max);
    }

    function test_EpochValidUntil_WhenTheEpochIsThePreviousOne() external {
        rotate();
        assertEq(fastPay.epochValidUntil(0), vm.getBlockTimestamp() + 14 days);
    }

    function test_EpochValidUntil_WhenTheEpochIsAnyOther() external {
        rotate();
        rotate();
        assertEq(fastPay.epochValidUntil(0), 0);
        assertEq(fastPay.epochValidUntil(3), 0);
        assertEq(fastPay.epochValidUntil(type(uint64).max), 0);
    }

    function test_OutflowAvailable_GivenNothingWasRedeemed() external view {
        assertEq(fastPay.outflowAvailable(ETHER), LIMIT);
    }

    function test_OutflowAvailable_GivenSomeWasRedeemed() external {
        redeem(order(4 ether, 0));
        // Six tenths of the share, of what is held now.
        assertApproxEqRel(fastPay.outflowAvailable(ETHER), uint256(96 ether) * 6 / 100, 1e10);
    }

    function test_OutflowAvailable_GivenAPartOfTheWindowHasPassed() external {
        redeem(order(LIMIT, 0));
        assertEq(fastPay.outflowAvailable(ETHER), 0);
        wait(6 hours);
        assertEq(fastPay.outflowAvailable(ETHER), 90 ether / 40);
        wait(18 hours);
        assertEq(fastPay.outflowAvailable(ETHER), 9 ether);
    }

    function test_OutflowAvailable_GivenNothingIsHeld() external view {
        assertEq(fastPay.outflowAvailable(address(token)), 0);
    }

    function test_Queued_GivenNothingWaits() external view {
        (uint256 executableAt, address by,,) = fastPay.queued(ACCOUNT, 0);
        assertEq(executableAt, 0);
        assertEq(by, address(0));
    }

    function test_Queued_GivenARedemptionWaits() external {
        enqueue(0);
        (uint256 executableAt, address by,,) = fastPay.queued(ACCOUNT, 0);
        assertEq(executableAt, vm.getBlockTimestamp() + 3 days);
        assertEq(by, relayer);
    }

    function test_IsRedeemed_GivenTheOrderIsSpent() external {
        redeem(order(1 ether, 258));
        enqueue(257);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 258));
        assertTrue(fastPay.isRedeemed(ACCOUNT, 257));
        assertEq(fastPay.redeemedBitmap(ACCOUNT, 1), 6);
    }

    function test_IsRedeemed_GivenTheOrderIsNotSpent() external {
        redeem(order(1 ether, 258));
        assertFalse(fastPay.isRedeemed(ACCOUNT, 2));
        assertFalse(fastPay.isRedeemed(bytes32(uint256(1)), 258));
        assertEq(fastPay.redeemedBitmap(ACCOUNT, 0), 0);
    }

    function test_Digests_WhenTheEpochDiffers() external view {
        assertNotEq(_one(0, 0), _one(1, 0));
        assertNotEq(
            fastPay.redemptionBatchVoteDigest(0, orders(2)), fastPay.redemptionBatchVoteDigest(1, orders(2))
        );
    }

    function test_Digests_WhenAFieldDiffers() external view {
        assertNotEq(_one(0, 0), _one(0, 1));
        assertNotEq(
            fastPay.releaseVoteDigest(0, order(1 ether, 0)), fastPay.releaseVoteDigest(0, order(1 ether, 1))
        );
    }

    function test_Digests_WhenTheBatchHasOneItem() external view {
        assertNotEq(_one(0, 0), fastPay.redemptionBatchVoteDigest(0, orders(1)));
    }

    function test_Digests_WhenTheChainDiffers() external {
        bytes32 here = _one(0, 0);
        vm.chainId(block.chainid + 1);
        assertNotEq(here, _one(0, 0));
    }

    function _one(uint64 epoch, uint64 sequence) private view returns (bytes32) {
        return fastPay.redemptionVoteDigest(epoch, order(1 ether, sequence));
    }
}
