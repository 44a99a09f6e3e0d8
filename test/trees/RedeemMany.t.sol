// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract RedeemManyTreeTest is TreeTest {
    function test_RevertGiven_TheContractIsPaused() external {
        _fails(_items(2), pause());
    }

    function test_WhenThereIsNoItem() external {
        vm.recordLogs();
        fastPay.redeemMany(new CertifiedRedemption[](0));
        assertEq(vm.getRecordedLogs().length, 0);
    }

    function test_GivenAnItemIsSpent() external {
        redeem(order(1 ether, 1));
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 1);
        fastPay.redeemMany(_items(3));
        assertEq(bob.balance, 2.7 ether);
    }

    function test_WhenAnItemComesTwice() external {
        CertifiedRedemption[] memory items = _items(2);
        items[1] = items[0];
        fastPay.redeemMany(items);
        assertEq(bob.balance, 0.9 ether);
    }

    function test_RevertWhen_AnEpochHasNoCommittee() external {
        CertifiedRedemption[] memory items = _items(2);
        items[1].epoch = 1;
        _fails(items, abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));
    }

    function test_RevertWhen_TheVotesOfAnItemAreNoQuorum() external {
        CertifiedRedemption[] memory items = _items(2);
        items[1].votes = hex"00";
        _fails(items, abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 1, 1, 198));
    }

    function test_RevertWhen_AnItemIsInvalid() external {
        CertifiedRedemption[] memory items = _items(3);
        items[2] = certifiedIn(0, order(0, 2));
        _fails(items, abi.encodeWithSelector(IFastPay.ZeroRedemption.selector, 2));
        assertEq(bob.balance, 0);
    }

    function test_WhenTheItemsAreOfBothValidEpochs() external {
        rotate();
        CertifiedRedemption[] memory items = _items(4);
        items[1] = certifiedIn(1, order(1 ether, 1));
        items[3] = certifiedIn(1, order(1 ether, 3));
        fastPay.redeemMany(items);
        assertEq(bob.balance, 3.6 ether);
    }

    function test_WhenTheItemsTogetherAreAboveTheOutflowLimit() external {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](3);
        (items[0], items[1]) = (certifiedIn(0, order(6 ether, 0)), certifiedIn(0, order(6 ether, 1)));
        items[2] = certifiedIn(0, order(1 ether, 2)); // within what the first has left
        fastPay.redeemMany(items);
        assertEq(fastPay.totalQueued(ETHER), 6 ether);
        (uint256 executableAt,,,) = fastPay.queued(ACCOUNT, 1);
        assertEq(executableAt, vm.getBlockTimestamp() + 3 days);
        assertEq(bob.balance, 6.3 ether);
    }

    function test_WhenAllItemsAreGood() external {
        CertifiedRedemption[] memory items = _items(3);
        vm.prank(relayer);
        fastPay.redeemMany(items);
        assertEq(bob.balance, 2.7 ether);
        assertEq(relayer.balance, 0.3 ether);
        assertHolding(ETHER, HELD - 3 ether, 0);
    }

    function _items(uint64 count) private view returns (CertifiedRedemption[] memory items) {
        items = new CertifiedRedemption[](count);
        for (uint64 i = 0; i < count; ++i) {
            items[i] = certifiedIn(0, order(1 ether, i));
        }
    }

    function _fails(CertifiedRedemption[] memory items, bytes memory revertData) private {
        vm.expectRevert(revertData);
        fastPay.redeemMany(items);
    }
}
