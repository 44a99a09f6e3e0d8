// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

contract DepositTokenWithPermitTreeTest is TreeTest {
    bytes32 private constant PERMIT_TYPE_HASH =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    function test_RevertWhen_TheAssetIsZero() external {
        vm.expectRevert(IFastPay.ZeroAsset.selector);
        fastPay.depositTokenWithPermit(ACCOUNT, IERC20(ETHER), 1, 0, 27, 0, 0);
    }

    function test_RevertWhen_TheAssetHasNoCode() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.AssetWithoutCode.selector, bob));
        fastPay.depositTokenWithPermit(ACCOUNT, IERC20(bob), 1, 0, 27, 0, 0);
    }

    function test_WhenTheTokenTakesThePermit() external {
        (address owner, uint256 key) = makeAddrAndKey("permits");
        token.transfer(owner, 10);
        bytes32 permit =
            keccak256(abi.encode(PERMIT_TYPE_HASH, owner, address(fastPay), 10, 0, type(uint256).max));
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(key, keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), permit)));
        vm.prank(owner);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 10, type(uint256).max, v, r, s);
        assertHolding(address(token), 10, 0);
    }

    function test_RevertWhen_TheAllowanceIsTooLow() external {
        token.approve(address(fastPay), 9);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PermitRefused.selector, address(token), 9, 10));
        fastPay.depositTokenWithPermit(ACCOUNT, token, 10, type(uint256).max, 27, 0, 0);
    }

    function test_WhenTheAllowanceSuffices() external {
        token.approve(address(fastPay), 10);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 10, type(uint256).max, 27, 0, 0);
        assertHolding(address(token), 10, 0);
    }
}
