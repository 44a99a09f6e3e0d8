// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient} from "../surroundings/Recipients.sol";
import {TreeTest} from "./TreeTest.sol";

contract ClaimToTreeTest is TreeTest {
    MoodyRecipient private _owner;

    function setUp() public override {
        super.setUp();
        _owner = claimant(0);
    }

    function test_RevertWhen_ThePayeeIsZero() external {
        _fails(ETHER, address(0), abi.encodeWithSelector(IFastPay.ZeroRecipient.selector));
    }

    function test_RevertWhen_ThePayeeIsTheContract() external {
        _fails(ETHER, address(fastPay), abi.encodeWithSelector(IFastPay.RecipientIsContract.selector));
    }

    function test_RevertGiven_TheContractIsPaused() external {
        _fails(ETHER, bob, pause());
    }

    function test_RevertGiven_TheCallerHasNoClaimOfTheAsset() external {
        _fails(
            address(token),
            bob,
            abi.encodeWithSelector(IFastPay.NothingToClaim.selector, address(_owner), address(token))
        );
    }

    function test_RevertWhen_ThePayeeRefuses() external {
        address payee = refuser();
        _fails(ETHER, payee, abi.encodeWithSelector(IFastPay.ClaimRefused.selector, payee, ETHER, 1 ether));
        assertEq(fastPay.claimOf(address(_owner), ETHER), 1 ether);
    }

    function test_WhenThePayeeAccepts() external {
        vm.expectEmit(address(fastPay));
        emit IFastPay.Claimed(address(_owner), ETHER, bob, 1 ether);
        _owner.claimTo(fastPay, ETHER, bob);
        assertEq(bob.balance, 1 ether);
        assertHolding(ETHER, HELD - 1 ether, 0);
    }

    function _fails(address asset, address to, bytes memory revertData) private {
        vm.expectRevert(revertData);
        _owner.claimTo(fastPay, asset, to);
    }
}
