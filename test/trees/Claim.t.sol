// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient} from "../mocks/Recipients.sol";
import {TreeTest} from "./TreeTest.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

contract ClaimTreeTest is TreeTest {
    MoodyRecipient private _owner;

    function setUp() public override {
        super.setUp();
        _owner = claimant(0);
    }

    function test_RevertWhen_ThePayeeIsZero() external {
        _fails(ETHER, address(0), 1, abi.encodeWithSelector(IFastPay.ZeroRecipient.selector));
    }

    function test_RevertWhen_ThePayeeIsTheContract() external {
        _fails(ETHER, address(fastPay), 1, abi.encodeWithSelector(IFastPay.RecipientIsContract.selector));
    }

    function test_RevertGiven_TheContractIsPaused() external {
        _fails(ETHER, bob, 1, pause());
    }

    function test_RevertGiven_TheCallerHasNoClaimOfTheAsset() external {
        _fails(
            address(token),
            bob,
            1,
            abi.encodeWithSelector(IFastPay.NothingToClaim.selector, address(_owner), address(token))
        );
    }

    function test_RevertWhen_TheAmountIsZero() external {
        _failsWithAmount(0);
    }

    function test_RevertWhen_TheAmountIsMoreThanTheClaim() external {
        _failsWithAmount(1 ether + 1);
    }

    function test_RevertWhen_ThePayeeRefuses() external {
        address payee = refuser();
        _fails(
            ETHER,
            payee,
            1 ether,
            abi.encodeWithSelector(IFastPay.ClaimRefused.selector, payee, ETHER, 1 ether)
        );
        assertEq(fastPay.claimOf(address(_owner), ETHER), 1 ether);
    }

    function test_WhenThePayeeCallsBack() external {
        _owner.setCallback(address(fastPay), abi.encodeCall(IFastPay.claim, (ETHER, bob, 1)));
        _owner.claim(fastPay, ETHER);
        assertEq(bytes4(_owner.answer()), ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        assertEq(address(_owner).balance, 1 ether);
        assertHolding(ETHER, HELD - 1 ether, 0);
    }

    function test_WhenTheAmountIsAPartOfTheClaim() external {
        MoodyRecipient other = claimant(1);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Claimed(address(_owner), ETHER, bob, 0.4 ether);
        _owner.claim(fastPay, ETHER, bob, 0.4 ether);
        assertEq(bob.balance, 0.4 ether);
        assertEq(fastPay.claimOf(address(_owner), ETHER), 0.6 ether);
        assertEq(fastPay.claimOf(address(other), ETHER), 1 ether);
        assertHolding(ETHER, HELD - 2 ether, 1.6 ether);
    }

    function test_WhenTheAmountIsAllOfTheClaim() external {
        _owner.claim(fastPay, ETHER, bob, 1 ether);
        assertEq(bob.balance, 1 ether);
        assertEq(fastPay.claimOf(address(_owner), ETHER), 0);
        assertHolding(ETHER, HELD - 1 ether, 0);
    }

    function _failsWithAmount(uint256 amount) private {
        bytes memory expected = abi.encodeWithSelector(
            IFastPay.InvalidClaimAmount.selector, address(_owner), ETHER, 1 ether, amount
        );
        _fails(ETHER, bob, amount, expected);
    }

    function _fails(address asset, address to, uint256 amount, bytes memory revertData) private {
        vm.expectRevert(revertData);
        _owner.claim(fastPay, asset, to, amount);
    }
}
