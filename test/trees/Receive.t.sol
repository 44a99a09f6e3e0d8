// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {ContractWallet} from "../mocks/ContractWallet.sol";
import {TreeTest} from "./TreeTest.sol";

contract ReceiveTreeTest is TreeTest {
    function test_RevertGiven_TheContractIsPaused() external {
        _fails(alice, 1, pause());
    }

    function test_RevertWhen_TheSenderIsNotTheOriginOfTheTransaction() external {
        ContractWallet wallet = new ContractWallet();
        vm.deal(address(wallet), 1);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.SenderWithoutKey.selector, address(wallet)));
        vm.prank(alice, alice);
        wallet.execute(address(fastPay), 1, "");
    }

    function test_RevertWhen_NoEtherComes() external {
        _fails(alice, 0, abi.encodeWithSelector(IFastPay.NothingReceived.selector, ETHER));
    }

    function test_RevertWhen_MoreComesThanABalanceCanHold() external {
        _fails(
            alice,
            ETHER_CAP,
            abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, ETHER, HELD, ETHER_CAP, ETHER_CAP)
        );
    }

    function test_WhenTheSenderSentTheTransactionItself() external {
        vm.deal(alice, 3);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(2, bytes32(uint256(uint160(alice))), ETHER, 3, alice);
        vm.prank(alice, alice);
        (bool sent,) = address(fastPay).call{value: 3}("");
        assertTrue(sent);
        assertHolding(ETHER, HELD + 3, 0);
        assertEq(fastPay.lastTransactionIndex(), 2);
    }

    function _fails(address sender, uint256 value, bytes memory revertData) private {
        vm.deal(sender, value);
        vm.prank(sender, sender);
        (bool sent, bytes memory answer) = address(fastPay).call{value: value}("");
        assertFalse(sent);
        assertEq(answer, revertData);
    }
}
