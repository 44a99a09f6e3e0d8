// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract UnlockingTreeTest is CouncilTest {
    function test_RequestUnlock_RevertWhen_TheCallerIsNotTheCouncil() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotCouncil.selector, address(this)));
        fastPay.requestUnlock(ACCOUNT, 7, 0, "");
    }

    function test_RequestUnlock_WhenTheCouncilCalls() external {
        vm.expectEmit(address(fastPay));
        emit IFastPay.UnlockRequested(2, ACCOUNT, 7, 1234, "signed");
        vm.prank(address(council));
        fastPay.requestUnlock(ACCOUNT, 7, 1234, "signed");
        assertEq(fastPay.lastTransactionIndex(), 2);
    }

    function test_Uphold_RevertWhen_TheCallerIsNotTheCouncil() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotCouncil.selector, address(this)));
        fastPay.uphold(ACCOUNT, 7, 0);
    }

    function test_Uphold_WhenTheCouncilCalls() external {
        vm.expectEmit(address(fastPay));
        emit IFastPay.SequenceUpheld(2, ACCOUNT, 7, keccak256("an order"));
        vm.prank(address(council));
        fastPay.uphold(ACCOUNT, 7, keccak256("an order"));
        assertFalse(fastPay.isRedeemed(ACCOUNT, 7));
    }

    function test_Void_RevertWhen_TheCallerIsNotTheCouncil() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotCouncil.selector, address(this)));
        fastPay.void(ACCOUNT, 7);
    }

    function test_Void_RevertGiven_TheContractIsPaused() external {
        bytes memory paused = pause();
        vm.prank(address(council));
        vm.expectRevert(paused);
        fastPay.void(ACCOUNT, 7);
    }

    function test_Void_RevertGiven_TheOrderIsSpent() external {
        redeem(order(1 ether, 7));
        vm.prank(address(council));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.SequenceSpent.selector, ACCOUNT, 7));
        fastPay.void(ACCOUNT, 7);
    }

    function test_Void_GivenTheOrderIsNotSpent() external {
        vm.expectEmit(address(fastPay));
        emit IFastPay.SequenceVoided(2, ACCOUNT, 7);
        vm.prank(address(council));
        fastPay.void(ACCOUNT, 7);
        redeemFails(order(1 ether, 7), abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 7));
    }
}
