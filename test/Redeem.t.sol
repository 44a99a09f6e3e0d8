// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {Vm} from "forge-std/Vm.sol";

/// @title One redemption, and bundles of them
contract RedeemTest is FastPayTest {
    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
        fundToken(token, 1000);
    }

    // ------------------------------------------------------------------------------ what is paid

    function test_PaysEther() public {
        Redemption memory order = redemption(ETHER, 3 ether, 0, 0);
        expectRedeemed(order, 3);
        redeem(order);
        assertEq(bob.balance, 3 ether);
        assertEq(relayer.balance, 0);
        assertHolding(ETHER, 7 ether, 0);
        assertHolding(address(token), 1000, 0);
    }

    function test_PaysTokens() public {
        expectRedeemed(redemption(address(token), 300, 0, 0), 3);
        redeem(redemption(address(token), 300, 0, 0));
        assertEq(token.balanceOf(bob), 300);
        assertHolding(address(token), 700, 0);
        assertHolding(ETHER, 10 ether, 0);
    }

    function test_PaysTheFeeToWhoeverSubmits() public {
        expectRedeemed(redemption(ETHER, 3 ether, 0.1 ether, 0), 3);
        redeem(redemption(ETHER, 3 ether, 0.1 ether, 0));
        assertEq(bob.balance, 2.9 ether);
        assertEq(relayer.balance, 0.1 ether);

        redeem(redemption(address(token), 300, 7, 1));
        assertEq(token.balanceOf(bob), 293);
        assertEq(token.balanceOf(relayer), 7);
        assertHolding(ETHER, 7 ether, 0);
        assertHolding(address(token), 700, 0);
    }

    function test_PaysAFeeOfAllOfIt() public {
        redeem(redemption(ETHER, 3 ether, 3 ether, 0));
        assertEq(bob.balance, 0);
        assertEq(relayer.balance, 3 ether);
    }

    function test_PaysARecipientWhoSubmitsItself() public {
        Redemption memory order = redemption(ETHER, 3 ether, 1 ether, 0);
        bytes memory votes = certify(order);
        vm.prank(bob);
        fastPay.redeem(order, 0, votes);
        assertEq(bob.balance, 3 ether);
    }

    function test_PaysTheLastUnit() public {
        redeem(redemption(ETHER, 10 ether, 0, 0));
        redeem(redemption(address(token), 1000, 0, 1));
        assertHolding(ETHER, 0, 0);
        assertHolding(address(token), 0, 0);
        assertEq(address(fastPay).balance, 0);
    }

    function testFuzz_Pays(uint128 amount, uint128 fee, uint64 sequence, bytes32 sender, bytes32 memo)
        public
    {
        amount = uint128(bound(amount, 1, 10 ether));
        fee = uint128(bound(fee, 0, amount));
        Redemption memory order = redemption(ETHER, amount, fee, sequence);
        (order.sender, order.memo) = (sender, memo);
        redeem(order);
        assertEq(bob.balance, amount - fee);
        assertEq(relayer.balance, fee);
        assertHolding(ETHER, 10 ether - amount, 0);
        assertTrue(fastPay.isRedeemed(sender, sequence));
        assertEq(fastPay.redeemedBitmap(sender, sequence / 256), 1 << (sequence % 256));
    }

    // ------------------------------------------------------------------------------ exactly once

    function test_RevertIf_RedeemedBefore() public {
        Redemption memory order = redemption(ETHER, 1 ether, 0, 9);
        redeem(order);
        redeemFails(order, abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 9));
        assertEq(bob.balance, 1 ether);
    }

    function test_RevertIf_TheNumberIsRedeemedByAnotherOrder() public {
        redeem(redemption(ETHER, 1 ether, 0, 9));
        redeemFails(
            redemption(address(token), 5, 0, 9),
            abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 9)
        );
    }

    function test_RevertIf_RedeemedBeforeByOtherVotes() public {
        Redemption memory order = redemption(ETHER, 1 ether, 0, 9);
        bytes32 digest = fastPay.redemptionVoteDigest(0, order);
        fastPay.redeem(order, 0, votesOf(0, 3, digest));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 9));
        fastPay.redeem(order, 0, votesOf(1, 3, digest));
    }

    function test_AnyOrder() public {
        uint64[9] memory sequences = [type(uint64).max, 511, 0, 256, 255, 1, 257, 1 << 63, 254];
        for (uint256 i = 0; i < sequences.length; ++i) {
            for (uint256 j = 0; j < sequences.length; ++j) {
                assertEq(fastPay.isRedeemed(ACCOUNT, sequences[j]), j < i);
            }
            skip(1 days); // the outflow limit is not what this is about
            redeem(redemption(ETHER, 1 ether, 0, sequences[i]));
        }
        assertEq(bob.balance, 9 ether);
        assertEq(fastPay.redeemedBitmap(ACCOUNT, 0), 3 | (3 << 254));
        assertEq(fastPay.redeemedBitmap(ACCOUNT, 1), 3 | (1 << 255));
        assertEq(fastPay.redeemedBitmap(ACCOUNT, type(uint64).max >> 8), 1 << 255);
    }

    function test_AccountsDoNotShareNumbers() public {
        Redemption memory order = redemption(ETHER, 1 ether, 0, 5);
        redeem(order);
        order.sender = bytes32(uint256(1));
        assertFalse(fastPay.isRedeemed(order.sender, 5));
        redeem(order);
        assertEq(bob.balance, 2 ether);
    }

    function test_AFailedRedemptionCanStillBeRedeemed() public {
        Redemption memory order = redemption(ETHER, 11 ether, 0, 0);
        redeemFails(
            order, abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 0, ETHER, 10 ether, 11 ether)
        );
        assertFalse(fastPay.isRedeemed(ACCOUNT, 0));
        fundEther(1 ether);
        redeem(order);
        assertEq(bob.balance, 11 ether);
    }

    // ------------------------------------------------------------------------------ wrong amounts

    function test_RevertIf_MoreThanTheAssetHolds() public {
        redeemFails(
            redemption(address(token), 1001, 0, 0),
            abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 0, address(token), 1000, 1001)
        );
        redeemFails(
            redemption(makeAddr("another asset"), 1, 0, 0),
            abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 0, makeAddr("another asset"), 0, 1)
        );
        redeemFails(
            redemption(address(fastPay), 1, 0, 0),
            abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 0, address(fastPay), 0, 1)
        );
    }

    function test_RevertIf_ForcedEtherWouldHaveToPay() public {
        vm.deal(address(fastPay), 100 ether);
        redeemFails(
            redemption(ETHER, 10 ether + 1, 0, 0),
            abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 0, ETHER, 10 ether, 10 ether + 1)
        );
    }

    function test_RevertIf_EtherIsSentAlong() public {
        Redemption memory order = redemption(ETHER, 1, 0, 0);
        bytes memory data = abi.encodeCall(IFastPay.redeem, (order, 0, certify(order)));
        vm.deal(relayer, 1);
        vm.prank(relayer);
        (bool success,) = address(fastPay).call{value: 1}(data);
        assertFalse(success);
    }

    function test_RevertIf_AFieldDoesNotFitItsType() public {
        Redemption memory order = redemption(ETHER, 1, 0, 0);
        bytes memory data = abi.encodeCall(IFastPay.redeem, (order, 0, certify(order)));
        // selector, then sender, recipient, asset, amount, fee, sequence, memo, epoch
        uint8[6] memory narrow = [1, 2, 3, 4, 5, 7];
        for (uint256 i = 0; i < narrow.length; ++i) {
            bytes memory dirty = bytes.concat(data);
            dirty[4 + uint256(narrow[i]) * 32] = 0x01;
            (bool refused,) = address(fastPay).call(dirty);
            assertFalse(refused, vm.toString(narrow[i]));
        }
        (bool success,) = address(fastPay).call(data);
        assertTrue(success);
    }

    // ------------------------------------------------------------------------------------ bundles

    function test_ABundlePaysAll() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](3);
        items[0] = certified(redemption(ETHER, 1 ether, 0.1 ether, 4));
        items[1] = certified(redemption(address(token), 10, 1, 2));
        items[2] = certified(redemption(ETHER, 2 ether, 0.1 ether, 0));
        for (uint64 i = 0; i < 3; ++i) {
            expectRedeemed(items[i].redemption, 3 + i);
        }
        vm.prank(relayer);
        fastPay.redeemMany(items);
        assertEq(bob.balance, 2.8 ether);
        assertEq(relayer.balance, 0.2 ether);
        assertEq(token.balanceOf(bob), 9);
        assertHolding(ETHER, 7 ether, 0);
        assertHolding(address(token), 990, 0);
    }

    function test_ABundleSkipsWhatIsRedeemedAlready() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](3);
        for (uint64 i = 0; i < 3; ++i) {
            items[i] = certified(redemption(ETHER, 1 ether, 0, i));
        }
        redeem(items[1].redemption); // somebody was faster
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 1);
        vm.prank(relayer);
        fastPay.redeemMany(items);
        assertEq(bob.balance, 3 ether);
    }

    function test_ABundlePaysARepeatedItemOnce() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](2);
        items[0] = items[1] = certified(redemption(ETHER, 1 ether, 0, 0));
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 0);
        fastPay.redeemMany(items);
        assertEq(bob.balance, 1 ether);
    }

    function test_ABundleOfRedeemedItemsDoesNothing() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](1);
        items[0] = certified(redemption(ETHER, 1 ether, 0, 0));
        fastPay.redeemMany(items);
        vm.recordLogs();
        fastPay.redeemMany(items);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 1);
        assertEq(logs[0].topics[0], IFastPay.RedemptionSkipped.selector);
        assertEq(bob.balance, 1 ether);
    }

    function test_AnEmptyBundleDoesNothing() public {
        vm.recordLogs();
        fastPay.redeemMany(new CertifiedRedemption[](0));
        assertEq(vm.getRecordedLogs().length, 0);
    }

    function test_RevertIf_AnItemOfABundleIsInvalid() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](3);
        for (uint64 i = 0; i < 3; ++i) {
            items[i] = certified(redemption(ETHER, 1 ether, 0, i));
        }
        items[2] = certified(redemption(ETHER, 0, 0, 2));
        _bundleFails(items, abi.encodeWithSelector(IFastPay.ZeroRedemption.selector, 2));

        items[2] = certified(redemption(ETHER, 1, 2, 2));
        _bundleFails(items, abi.encodeWithSelector(IFastPay.FeeAboveAmount.selector, 2, 2, 1));

        items[2] = certified(redemption(ETHER, 9 ether, 0, 2));
        _bundleFails(
            items, abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 2, ETHER, 8 ether, 9 ether)
        );

        items[2] = certified(redemption(ETHER, 1 ether, 0, 2));
        items[2].votes = "";
        _bundleFails(items, abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 2, 0, 198));

        items[2] = certified(redemption(ETHER, 1 ether, 0, 2));
        items[2].epoch = 1;
        _bundleFails(items, abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));

        items[2].epoch = 0;
        items[2].votes = items[1].votes;
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.redeemMany(items);
    }

    function testFuzz_ABundlePaysWhatSingleRedemptionsWould(uint8 done, uint64 first) public {
        first = uint64(bound(first, 0, type(uint64).max - 8));
        CertifiedRedemption[] memory items = new CertifiedRedemption[](8);
        for (uint64 i = 0; i < 8; ++i) {
            items[i] = certified(redemption(ETHER, (i + 1) * 0.1 ether, i, first + i));
            if ((done >> i) & 1 == 1) redeem(items[i].redemption);
        }
        vm.prank(relayer);
        fastPay.redeemMany(items);
        assertEq(bob.balance, 3.6 ether - 28);
        assertEq(relayer.balance, 28);
        assertHolding(ETHER, 6.4 ether, 0);
    }

    function _bundleFails(CertifiedRedemption[] memory items, bytes memory revertData) private {
        vm.expectRevert(revertData);
        fastPay.redeemMany(items);
        assertFalse(fastPay.isRedeemed(ACCOUNT, 0), "an item of a bundle that failed stayed redeemed");
    }
}
