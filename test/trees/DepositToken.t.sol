// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {AssetCap, IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {
    BlackHoleToken,
    CallbackToken,
    FeeToken,
    MoodyToken,
    ThiefToken,
    ZooToken
} from "../tokens/WeirdTokens.sol";
import {TreeTest} from "./TreeTest.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

contract DepositTokenTreeTest is TreeTest {
    function test_RevertWhen_TheAssetIsZero() external {
        vm.expectRevert(IFastPay.ZeroAsset.selector);
        fastPay.depositToken(ACCOUNT, IERC20(ETHER), 1);
    }

    function test_RevertWhen_TheAssetHasNoCode() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.AssetWithoutCode.selector, bob));
        fastPay.depositToken(ACCOUNT, IERC20(bob), 1);
    }

    function test_RevertWhen_ThePayerApprovedTooLittle() external {
        token.transfer(alice, 10);
        vm.startPrank(alice);
        token.approve(address(fastPay), 9);
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(fastPay), 9, 10)
        );
        fastPay.depositToken(ACCOUNT, token, 10);
    }

    function test_RevertWhen_TheTokenAnswersFalse() external {
        MoodyToken moody = new MoodyToken();
        moody.setMood(MoodyToken.Mood.ReturnsFalse);
        _fails(moody, abi.encodeWithSelector(SafeERC20.SafeERC20FailedOperation.selector, address(moody)));
    }

    function test_RevertWhen_NothingArrives() external {
        BlackHoleToken hole = new BlackHoleToken();
        _fails(hole, abi.encodeWithSelector(IFastPay.NothingReceived.selector, address(hole)));
    }

    function test_RevertWhen_LessIsHeldThanBefore() external {
        ThiefToken thief = new ThiefToken();
        thief.mint(address(fastPay), 10);
        _fails(thief, abi.encodeWithSelector(IFastPay.NothingReceived.selector, address(thief)));
        assertEq(thief.balanceOf(address(fastPay)), 10);
    }

    function test_WhenTheTokenCallsBack() external {
        CallbackToken caller = new CallbackToken();
        _prepare(caller);
        caller.setCallback(address(fastPay), abi.encodeCall(IFastPay.depositEther, (ACCOUNT)));
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, caller, 10);
        assertEq(bytes4(caller.answer()), ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        assertHolding(address(caller), 10, 0);
    }

    function test_RevertWhen_MoreArrivesThanABalanceCanHold() external {
        token.approve(address(fastPay), uint256(CAP) + 1);
        fastPay.depositToken(ACCOUNT, token, 1);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, address(token), 1, CAP, CAP)
        );
        fastPay.depositToken(ACCOUNT, token, CAP);
    }

    function test_RevertGiven_TheContractIsPaused() external {
        _fails(new MoodyToken(), pause());
    }

    function test_RevertWhen_TheRecipientIsZero() external {
        token.approve(address(fastPay), 1);
        vm.expectRevert(IFastPay.ZeroRecipient.selector);
        fastPay.depositToken(0, token, 1);
    }

    function test_RevertWhen_TheRecipientIsTheAccountOfTheContract() external {
        token.approve(address(fastPay), 1);
        vm.expectRevert(IFastPay.RecipientIsContract.selector);
        fastPay.depositToken(bytes32(uint256(uint160(address(fastPay)))), token, 1);
    }

    function test_RevertWhen_TheTokenHasLessThanItOwesToAccounts() external {
        fundToken(token, 100);
        vm.prank(address(fastPay)); // as a rebase down does
        token.transfer(bob, 30);
        token.transfer(alice, 10);
        vm.startPrank(alice);
        token.approve(address(fastPay), 10);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetUnderCollateralized.selector, address(token), 80, 110)
        );
        fastPay.depositToken(ACCOUNT, token, 10);
        vm.stopPrank();
        token.transfer(address(fastPay), 30); // anybody can make it good
        fundToken(token, 10);
        assertHolding(address(token), 110, 0);
    }

    function test_RevertWhen_TheTokenHasLessThanItOwesToAccountsAndClaims() external {
        MoodyToken moody = new MoodyToken();
        moody.mint(alice, 2000);
        fundToken(moody, 1000);
        moody.setMood(MoodyToken.Mood.Reverts);
        redeem(redemption(address(moody), 100, 0, 0));
        moody.setMood(MoodyToken.Mood.Good);
        vm.prank(address(fastPay));
        moody.transfer(bob, 1);
        vm.startPrank(alice);
        moody.approve(address(fastPay), 50);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetUnderCollateralized.selector, address(moody), 1049, 1050)
        );
        fastPay.depositToken(ACCOUNT, moody, 50);
        vm.stopPrank();
        moody.mint(address(fastPay), 1);
        fundToken(moody, 50);
        assertHolding(address(moody), 950, 100);
    }

    function test_RevertWhen_ItIsMoreThanTheDepositCap() external {
        AssetCap[] memory caps = new AssetCap[](1);
        caps[0] = AssetCap({asset: address(token), cap: 500});
        fastPay = deploy(4, tight(), caps);
        assertEq(fastPay.depositCap(address(token)), 500);
        fundToken(token, 400);
        token.transfer(alice, 101);
        vm.startPrank(alice);
        token.approve(address(fastPay), 101);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, address(token), 400, 101, 500)
        );
        fastPay.depositToken(ACCOUNT, token, 101);
        fastPay.depositToken(ACCOUNT, token, 100);
        vm.stopPrank();
        assertHolding(address(token), 500, 0);
    }

    function test_WhenLessArrivesThanWasSent() external {
        FeeToken fee = new FeeToken();
        _prepare(fee);
        fee.mint(alice, 990);
        vm.startPrank(alice);
        fee.approve(address(fastPay), 1000);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(2, ACCOUNT, address(fee), 990, alice);
        fastPay.depositToken(ACCOUNT, fee, 1000);
        assertHolding(address(fee), 990, 0);
    }

    function test_WhenAllArrives() external {
        token.approve(address(fastPay), 10);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(2, ACCOUNT, address(token), 10, address(this));
        fastPay.depositToken(ACCOUNT, token, 10);
        assertHolding(address(token), 10, 0);
        assertHolding(ETHER, HELD, 0);
    }

    /// @dev Alice has ten, and has approved them.
    function _prepare(ZooToken asset) private {
        asset.mint(alice, 10);
        vm.prank(alice);
        asset.approve(address(fastPay), 10);
    }

    function _fails(ZooToken asset, bytes memory revertData) private {
        _prepare(asset);
        vm.expectRevert(revertData);
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, asset, 10);
    }
}
