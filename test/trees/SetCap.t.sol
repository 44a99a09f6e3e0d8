// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract SetCapTreeTest is CouncilTest {
    function test_RevertWhen_TheCallerIsNotTheCouncil() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotCouncil.selector, guardian));
        vm.prank(guardian);
        fastPay.setCap(ETHER, 2000 ether);
    }

    function test_RevertWhen_TheCapIsZero() external {
        _fails(ETHER, 0, ETHER_CAP_SET);
    }

    function test_RevertGiven_TheAssetHasNoCap() external {
        _fails(address(token), 1, CAP);
        _fails(address(token), type(uint128).max, CAP);
    }

    function test_RevertWhen_TheCapIsNotAboveTheOneThatHolds() external {
        _fails(ETHER, 1000 ether, ETHER_CAP_SET);
        _fails(ETHER, 1, ETHER_CAP_SET);
    }

    function test_WhenTheCapIsHigher() external {
        vm.expectEmit(address(fastPay));
        emit IFastPay.CapRaised(ETHER, 1 << 80);
        vm.prank(address(council));
        fastPay.setCap(ETHER, 1 << 80);
        assertEq(fastPay.depositCap(ETHER), 1 << 80);
        assertHolding(ETHER, HELD, 0);
        assertEq(fastPay.lastTransactionIndex(), 1);
    }

    function _fails(address asset, uint128 cap, uint256 current) private {
        vm.prank(address(council));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCap.selector, asset, current, cap));
        fastPay.setCap(asset, cap);
    }
}
