// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {ZooToken} from "../tokens/WeirdTokens.sol";
import {HostileTest} from "./HostileTest.sol";
import {HostileToken} from "./HostileToken.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

/// @title One test for each thing that a token can do to its holders
contract HostileTokensTest is HostileTest {
    address private _asset;

    function setUp() public override {
        super.setUp();
        _asset = address(hostile);
    }

    // ----------------------------------------------------------------------------- while paying out

    function test_AFeeIsTheRecipientsLoss() public {
        hostile.turn(HostileToken.Harm.TakesAFee);
        redeem(orderOf(_asset, 1000, 0));
        assertEq(hostile.balanceOf(bob), 810);
        assertHolding(_asset, HELD - 1000, 0);
    }

    function test_ARebaseUpIsNobodys() public {
        hostile.turn(HostileToken.Harm.RebasesUp);
        redeem(orderOf(_asset, 1000, 0));
        assertEq(hostile.balanceOf(bob), 900);
        assertHolding(_asset, HELD - 1000, 0);
    }

    /// @dev After a rebase down the last ones find nothing: their payouts become claims, on that asset alone.
    function test_ARebaseDownLeavesClaims() public {
        hostile.turn(HostileToken.Harm.RebasesDown);
        for (uint64 i = 0; i < 10; ++i) {
            redeem(orderOf(_asset, uint128(fastPay.outflowAvailable(_asset)), i));
            wait(1 days);
        }
        uint256 held = fastPay.totalBalance(_asset) + fastPay.totalClaims(_asset);
        assertGt(fastPay.totalClaims(_asset), 0);
        assertLt(hostile.balanceOf(address(fastPay)), held);
        redeem(order(LIMIT, 100));
        assertEq(bob.balance, LIMIT - LIMIT / 10);
    }

    function test_AnAnswerOfFalseLeavesAClaim() public {
        _leavesAClaim(HostileToken.Harm.ReturnsFalse);
    }

    function test_AnAnswerOfMuchIsPaymentWithinBounds() public {
        hostile.turn(HostileToken.Harm.ReturnsMuch);
        redeem(orderOf(_asset, 1000, 0));
        assertEq(hostile.balanceOf(bob), 900);
    }

    /// @dev A fee of zero, or one of everything, is not transferred at all.
    function test_ARevertOnZeroMeetsNoZero() public {
        hostile.turn(HostileToken.Harm.RevertsOnZero);
        redeem(redemption(_asset, 1000, 0, 0));
        redeem(redemption(_asset, 1000, 1000, 1));
        assertEq(hostile.balanceOf(bob), 1000);
        assertEq(hostile.balanceOf(relayer), 1000);
        assertHolding(_asset, HELD - 2000, 0);
    }

    /// @dev The contract never approves anything, and deposits need no allowance beyond their own.
    function test_ARevertOnASecondApprovalIsNoMatter() public {
        hostile.turn(HostileToken.Harm.RevertsOnSecondApproval);
        hostile.mint(alice, 20);
        fundToken(hostile, 10);
        fundToken(hostile, 10);
        assertEq(hostile.allowance(address(fastPay), bob), 0);
        redeem(orderOf(_asset, 1000, 0));
        assertEq(hostile.balanceOf(bob), 900);
    }

    function test_ABlockedRecipientHasAClaimThatItCanSendElsewhere() public {
        hostile.turn(HostileToken.Harm.BlocksRecipients);
        hostile.blockAddress(bob, true);
        redeem(orderOf(_asset, 1000, 0));
        assertEq(fastPay.claimOf(bob, _asset), 900);
        assertEq(hostile.balanceOf(relayer), 100);
        vm.prank(bob);
        fastPay.claim(_asset, alice, 900);
        assertEq(hostile.balanceOf(alice), 900);
        assertHolding(_asset, HELD - 1000, 0);
    }

    function test_ABlockedContractOwesUntilItIsUnblocked() public {
        hostile.blockAddress(address(fastPay), true);
        _leavesAClaim(HostileToken.Harm.BlocksSenders);
    }

    function test_APausedTokenIsOwed() public {
        _leavesAClaim(HostileToken.Harm.IsPaused);
    }

    function test_ABurnOfAllGasLeavesAClaim() public {
        _leavesAClaim(HostileToken.Harm.BurnsAllGas);
    }

    /// @dev What is owed comes from the contract's own books, whatever the token says.
    function test_LiesAboutBalancesChangeNoPayout() public {
        HostileToken.Harm[4] memory lies = [
            HostileToken.Harm.ClaimsTooMuch,
            HostileToken.Harm.ClaimsNothing,
            HostileToken.Harm.ClaimsTheMost,
            HostileToken.Harm.RevertsOnBalance
        ];
        for (uint64 i = 0; i < lies.length; ++i) {
            hostile.turn(lies[i]);
            redeem(orderOf(_asset, 1000, i));
            hostile.turn(HostileToken.Harm.None);
            assertEq(hostile.balanceOf(bob), 900 * (i + 1));
        }
    }

    function test_ATokenThatTakesFromRecipientsTakesFromThemAlone() public {
        hostile.mint(bob, 50);
        hostile.turn(HostileToken.Harm.TakesFromTheRecipient);
        redeem(orderOf(_asset, 1000, 0));
        assertEq(hostile.balanceOf(bob), 0);
        assertHolding(_asset, HELD - 1000, 0);
    }

    // -------------------------------------------------------------------------------- while depositing

    function test_ALieAboutTheBalanceCreditsOnlyThatAsset() public {
        LiarOnDeposit liar = new LiarOnDeposit();
        fastPay.depositToken(ACCOUNT, liar, 1);
        assertEq(fastPay.totalBalance(address(liar)), 1e30); // as it says; it is worth what it is worth
        assertEq(fastPay.totalBalance(ETHER), HELD);
        assertEq(fastPay.totalBalance(address(token)), HELD);
    }

    function test_RevertIf_TheTokenClaimsTheMost() public {
        LiarOnDeposit liar = new LiarOnDeposit();
        liar.setLie(type(uint256).max);
        vm.expectRevert(
            abi.encodeWithSelector(
                IFastPay.AssetCapExceeded.selector, address(liar), 0, type(uint256).max, CAP
            )
        );
        fastPay.depositToken(ACCOUNT, liar, 1);
    }

    function test_RevertIf_TheTokenIsPausedOrBlocksOrHidesItsBalance() public {
        hostile.mint(address(this), 10);
        hostile.approve(address(fastPay), 10);
        hostile.blockAddress(address(fastPay), true);
        HostileToken.Harm[4] memory harms = [
            HostileToken.Harm.IsPaused,
            HostileToken.Harm.BlocksRecipients,
            HostileToken.Harm.RevertsOnBalance,
            HostileToken.Harm.TakesFromTheRecipient
        ];
        for (uint256 i = 0; i < harms.length; ++i) {
            hostile.turn(harms[i]);
            vm.expectRevert();
            fastPay.depositToken(ACCOUNT, hostile, 10);
        }
        hostile.turn(HostileToken.Harm.None);
        assertHolding(_asset, HELD, 0);
    }

    function test_EveryNumberOfDecimalsIsTheSame() public {
        uint8[4] memory decimals = [0, 6, 18, 30];
        for (uint64 i = 0; i < decimals.length; ++i) {
            HostileToken made = _deposited(decimals[i]);
            assertEq(made.decimals(), decimals[i]);
            redeem(orderOf(address(made), LIMIT, i));
            assertEq(made.balanceOf(bob), LIMIT - LIMIT / 10);
            assertHolding(address(made), HELD - LIMIT, 0);
        }
    }

    // ------------------------------------------------------------------------------------- re-entry

    function test_NoFunctionCanBeReEnteredFromAPayout() public {
        _callsBackIntoEachFunction();
        redeem(orderOf(_asset, 1000, 0));
        // In the payout's own allowance of gas it gets as far as it gets; nothing of it goes through.
        _assertNothingWentThrough();
        assertHolding(ETHER, HELD, 0);
    }

    function test_NoFunctionCanBeReEnteredFromADeposit() public {
        hostile.mint(alice, 10);
        _callsBackIntoEachFunction();
        fundToken(hostile, 10);
        assertEq(hostile.calls(), 13);
        _assertNothingWentThrough();
        assertHolding(_asset, HELD + 10, 0);
        assertHolding(ETHER, HELD, 0);
    }

    function test_NoFunctionCanBeReEnteredFromAClaim() public {
        hostile.turn(HostileToken.Harm.IsPaused);
        redeem(orderOf(_asset, 1000, 0));
        _callsBackIntoEachFunction();
        vm.prank(bob);
        fastPay.claim(_asset, bob, 900);
        assertEq(hostile.calls(), 13);
        _assertNothingWentThrough();
        assertEq(hostile.balanceOf(bob), 900);
    }

    // ------------------------------------------------------------------------------------- private

    function _callsBackIntoEachFunction() private {
        // As the guardian too, so that only the guard can be what stops it.
        vm.startPrank(address(this));
        vm.stopPrank();
        hostile.setCallbacks(address(fastPay), callsOfEachFunction(77));
    }

    function _assertNothingWentThrough() private view {
        for (uint256 i = 0; i < hostile.numberOfAnswers(); ++i) {
            assertEq(
                hostile.answers(i),
                ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector,
                "which call"
            );
        }
        assertEq(fastPay.epoch(), 0);
        assertEq(fastPay.pausedUntil(), 0);
        assertFalse(fastPay.isRedeemed(ACCOUNT, 77));
    }

    function _leavesAClaim(HostileToken.Harm harm) private {
        hostile.turn(harm);
        redeem(orderOf(_asset, 1000, 0));
        assertEq(fastPay.claimOf(bob, _asset), 900);
        assertEq(fastPay.claimOf(relayer, _asset), 100);
        assertHolding(_asset, HELD - 1000, 1000);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.ClaimRefused.selector, bob, _asset, 900));
        vm.prank(bob);
        fastPay.claim{gas: 1_000_000}(_asset, bob, 900);
        hostile.turn(HostileToken.Harm.None);
        hostile.blockAddress(address(fastPay), false);
        vm.prank(bob);
        fastPay.claim(_asset, bob, 900);
        assertEq(hostile.balanceOf(bob), 900);
        assertHolding(_asset, HELD - 1000, 100);
    }
}

/// @title Says after a transfer that it has brought much more than it has
contract LiarOnDeposit is ZooToken {
    uint256 private _lie = 1e30;
    bool private _lies;

    function setLie(uint256 lie) external {
        _lie = lie;
    }

    function balanceOf(address) public view override returns (uint256) {
        return _lies ? _lie : 0;
    }

    function transferFrom(address, address, uint256) public override returns (bool) {
        _lies = true;
        return true;
    }
}
