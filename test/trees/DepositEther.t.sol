// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract DepositEtherTreeTest is TreeTest {
    function test_RevertGiven_TheContractIsPaused() external {
        _fails(ACCOUNT, 1, pause());
    }

    function test_RevertWhen_TheRecipientIsZero() external {
        _fails(0, 1, abi.encodeWithSelector(IFastPay.ZeroRecipient.selector));
    }

    function test_RevertWhen_TheRecipientIsTheAccountOfTheContract() external {
        bytes32 own = bytes32(uint256(uint160(address(fastPay))));
        _fails(own, 1, abi.encodeWithSelector(IFastPay.RecipientIsContract.selector));
    }

    function test_RevertWhen_NoEtherComes() external {
        _fails(ACCOUNT, 0, abi.encodeWithSelector(IFastPay.NothingReceived.selector, ETHER));
    }

    function test_RevertWhen_MoreComesThanABalanceCanHold() external {
        _fails(
            ACCOUNT,
            ETHER_CAP,
            abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, ETHER, HELD, ETHER_CAP, ETHER_CAP)
        );
    }

    function test_WhenEtherComesForAnAccount() external {
        vm.deal(bob, 3);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(2, ACCOUNT, ETHER, 3, bob);
        vm.prank(bob);
        fastPay.depositEther{value: 3}(ACCOUNT);
        assertHolding(ETHER, HELD + 3, 0);
        assertEq(fastPay.lastTransactionIndex(), 2);
    }

    function _fails(bytes32 recipient, uint256 value, bytes memory revertData) private {
        vm.deal(bob, value);
        vm.prank(bob);
        vm.expectRevert(revertData);
        fastPay.depositEther{value: value}(recipient);
    }
}
