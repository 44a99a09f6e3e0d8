// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract RedeemBatchTreeTest is TreeTest {
    uint256 private constant WHOLE_CALL = type(uint256).max;

    function test_RevertWhen_ThereIsNoItem() external {
        Redemption[] memory none = new Redemption[](0);
        _fails(none, 0, batchVotes(0, none), abi.encodeWithSelector(IFastPay.EmptyBatch.selector));
    }

    function test_RevertGiven_TheContractIsPaused() external {
        bytes memory votes = batchVotes(0, orders(2));
        _fails(orders(2), 0, votes, pause());
    }

    function test_RevertWhen_TheEpochHasNoCommittee() external {
        _fails(
            orders(2), 1, batchVotes(1, orders(2)), abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1)
        );
    }

    function test_RevertWhen_TheEpochHasEnded() external {
        bytes memory votes = batchVotes(0, orders(2));
        rotate();
        uint256 end = fastPay.epochValidUntil(0);
        vm.warp(end + 1);
        _fails(orders(2), 0, votes, abi.encodeWithSelector(IFastPay.EpochEnded.selector, 0, end));
    }

    function test_RevertWhen_TheVotesAreNoQuorum() external {
        _fails(
            orders(2),
            0,
            hex"00",
            abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, WHOLE_CALL, 1, 198)
        );
    }

    function test_RevertWhen_TheVotesAreForOneRedemption() external {
        _failsAsNotSigned(orders(1), certifyIn(0, orders(1)[0]));
    }

    function test_RevertWhen_TheItemsAreNotInTheOrderThatWasSigned() external {
        Redemption[] memory items = orders(2);
        (items[0], items[1]) = (items[1], items[0]);
        _failsAsNotSigned(items, batchVotes(0, orders(2)));
    }

    function test_RevertWhen_AnItemWasAltered() external {
        Redemption[] memory items = orders(2);
        items[1].recipient = alice;
        _failsAsNotSigned(items, batchVotes(0, orders(2)));
        // Nor can one be left out, or added.
        _failsAsNotSigned(orders(1), batchVotes(0, orders(2)));
        _failsAsNotSigned(orders(3), batchVotes(0, orders(2)));
    }

    function test_GivenAnItemIsSpent() external {
        redeem(order(1 ether, 1));
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 1);
        _redeemBatch(orders(3));
        assertEq(bob.balance, 2.7 ether);
    }

    function test_WhenAnItemComesTwice() external {
        Redemption[] memory items = orders(2);
        items[1] = items[0];
        _redeemBatch(items);
        assertEq(bob.balance, 0.9 ether);
    }

    function test_RevertWhen_AnItemIsInvalid() external {
        Redemption[] memory items = orders(2);
        items[1].fee = items[1].amount + 1;
        _fails(
            items,
            0,
            batchVotes(0, items),
            abi.encodeWithSelector(IFastPay.FeeAboveAmount.selector, 1, items[1].fee, items[1].amount)
        );
    }

    function test_WhenAnItemIsAboveTheOutflowLimit() external {
        Redemption[] memory items = orders(3);
        items[1].amount = LIMIT + 1;
        _redeemBatch(items);
        assertEq(fastPay.totalQueued(ETHER), LIMIT + 1);
        assertEq(bob.balance, 1.8 ether);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 1));
    }

    function test_WhenItsItemWasCertifiedInAnEpochThatEnded() external {
        Redemption[] memory items = orders(1);
        rotate();
        rotate();
        bytes memory votes = batchVotes(2, items);
        fastPay.redeemBatch(items, 2, votes);
        assertEq(bob.balance, 0.9 ether);
    }

    function test_WhenAllItemsAreGood() external {
        _redeemBatch(orders(3));
        assertEq(bob.balance, 2.7 ether);
        assertEq(relayer.balance, 0.3 ether);
        assertHolding(ETHER, HELD - 3 ether, 0);
    }

    function _redeemBatch(Redemption[] memory items) private {
        bytes memory votes = batchVotes(0, items);
        vm.prank(relayer);
        fastPay.redeemBatch(items, 0, votes);
    }

    function _fails(Redemption[] memory items, uint64 epoch, bytes memory votes, bytes memory revertData)
        private
    {
        vm.expectRevert(revertData);
        fastPay.redeemBatch(items, epoch, votes);
    }

    function _failsAsNotSigned(Redemption[] memory items, bytes memory votes) private {
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.redeemBatch(items, 0, votes);
    }
}
