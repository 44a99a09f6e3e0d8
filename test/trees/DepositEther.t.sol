// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {AssetCap, IFastPay} from "../../contracts/interfaces/IFastPay.sol";
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

    function test_RevertWhen_ItIsMoreThanTheDepositCap() external {
        AssetCap[] memory caps = new AssetCap[](1);
        caps[0] = AssetCap({asset: ETHER, cap: 256});
        fastPay = deploy(4, tight(), caps);
        _fails(ACCOUNT, 257, abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, ETHER, 0, 257, 256));
        fundEther(256);
    }

    function test_GivenAPartOfTheOutflowLimitIsUsed() external {
        redeem(order(LIMIT, 0));
        assertEq(fastPay.outflowAvailable(ETHER), 0);
        fundEther(4 ether);
        assertLe(fastPay.outflowAvailable(ETHER), 4 ether);
        assertApproxEqRel(fastPay.outflowAvailable(ETHER), 4 ether, 1e10);
    }

    function test_GivenLessOfTheOutflowLimitIsUsedThanComesIn() external {
        redeem(order(LIMIT / 10, 0));
        fundEther(21 ether);
        assertEq(fastPay.outflowAvailable(ETHER), 12 ether);
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
