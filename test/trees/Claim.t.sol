// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient} from "../surroundings/Recipients.sol";
import {TreeTest} from "./TreeTest.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

contract ClaimTreeTest is TreeTest {
    MoodyRecipient private _owner;

    function setUp() public override {
        super.setUp();
        _owner = claimant(0);
    }

    function test_RevertGiven_TheContractIsPaused() external {
        bytes memory revertData = pause();
        vm.expectRevert(revertData);
        _owner.claim(fastPay, ETHER);
    }

    function test_RevertGiven_TheCallerHasNoClaimOfTheAsset() external {
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.NothingToClaim.selector, address(_owner), address(token))
        );
        _owner.claim(fastPay, address(token));
    }

    function test_RevertWhen_TheCallerRefusesAgain() external {
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.ClaimRefused.selector, address(_owner), ETHER, 1 ether)
        );
        _owner.claim(fastPay, ETHER);
        assertEq(fastPay.claimOf(address(_owner), ETHER), 1 ether);
    }

    function test_WhenTheCallerCallsBack() external {
        _owner.setCallback(address(fastPay), abi.encodeCall(IFastPay.claim, (ETHER)));
        _owner.claim(fastPay, ETHER);
        assertEq(bytes4(_owner.answer()), ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        assertEq(address(_owner).balance, 1 ether);
        assertHolding(ETHER, HELD - 1 ether, 0);
    }

    function test_WhenTheCallerAccepts() external {
        MoodyRecipient other = claimant(1);
        _owner.setMood(MoodyRecipient.Mood.Accepts);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Claimed(address(_owner), ETHER, address(_owner), 1 ether);
        _owner.claim(fastPay, ETHER);
        assertEq(address(_owner).balance, 1 ether);
        assertEq(fastPay.claimOf(address(_owner), ETHER), 0);
        assertEq(fastPay.claimOf(address(other), ETHER), 1 ether);
        assertHolding(ETHER, HELD - 2 ether, 1 ether);
    }
}
