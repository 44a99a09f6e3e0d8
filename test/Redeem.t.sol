// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title One redemption, and many in one call: a bundle of certificates, or a batch under one vote
contract RedeemTest is FastPayTest {
    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
        fundToken(token, 1000);
    }

    // ------------------------------------------------------------------------------ what is paid

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

    function test_PaysARecipientWhoSubmitsItself() public {
        Redemption memory order = redemption(ETHER, 3 ether, 1 ether, 0);
        bytes memory votes = certify(order);
        vm.prank(bob);
        fastPay.redeem(order, 0, votes);
        assertEq(bob.balance, 3 ether);
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

    // ------------------------------------------------------------------------------------- many

    function test_ABundleAndABatchPayAll() public {
        Redemption[] memory orders = new Redemption[](3);
        orders[0] = redemption(ETHER, 1 ether, 0.1 ether, 4);
        orders[1] = redemption(address(token), 10, 1, 2);
        orders[2] = redemption(ETHER, 2 ether, 0.1 ether, 0);
        (bytes memory bundle, bytes memory batch) = (_many(orders, false), _many(orders, true));
        uint256 state = vm.snapshotState();
        _paysAll(orders, bundle);
        vm.revertToState(state);
        _paysAll(orders, batch);
    }

    function _paysAll(Redemption[] memory orders, bytes memory call) private {
        for (uint64 i = 0; i < 3; ++i) {
            expectRedeemed(orders[i], 3 + i);
        }
        _succeeds(call);
        assertEq(bob.balance, 2.8 ether);
        assertEq(relayer.balance, 0.2 ether);
        assertEq(token.balanceOf(bob), 9);
        assertEq(token.balanceOf(relayer), 1);
        assertHolding(ETHER, 7 ether, 0);
        assertHolding(address(token), 990, 0);
    }

    function test_RevertIf_AnItemIsMoreThanTheOthersLeave() public {
        Redemption[] memory orders = new Redemption[](2);
        orders[0] = redemption(ETHER, 1 ether, 0, 0);
        orders[1] = redemption(ETHER, 9 ether + 1, 0, 1);
        bytes memory tooLow =
            abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 1, ETHER, 9 ether, 9 ether + 1);
        for (uint256 i = 0; i < 2; ++i) {
            (bool success, bytes memory answer) = address(fastPay).call(_many(orders, i == 1));
            assertFalse(success);
            assertEq(answer, tooLow);
            assertFalse(fastPay.isRedeemed(ACCOUNT, 0), "an item of a call that failed stayed redeemed");
        }
    }

    function testFuzz_ManyPayWhatSingleRedemptionsWould(uint8 done, uint64 first, uint256 count, bool batch)
        public
    {
        count = bound(count, 1, 8);
        first = uint64(bound(first, 0, type(uint64).max - 8));
        Redemption[] memory orders = new Redemption[](count);
        (uint256 total, uint256 fees) = (0, 0);
        for (uint64 i = 0; i < count; ++i) {
            orders[i] = redemption(ETHER, (i + 1) * 0.1 ether, i, first + i);
            (total, fees) = (total + orders[i].amount, fees + i);
            if ((done >> i) & 1 == 1) redeem(orders[i]);
        }
        _succeeds(_many(orders, batch));
        assertEq(bob.balance, total - fees);
        assertEq(relayer.balance, fees);
        assertHolding(ETHER, 10 ether - total, 0);
    }

    /// @dev The call that redeems them all.
    function _many(Redemption[] memory orders, bool batch) private view returns (bytes memory) {
        if (batch) {
            bytes memory votes = votesOf(0, 3, fastPay.redemptionBatchVoteDigest(0, orders));
            return abi.encodeCall(IFastPay.redeemBatch, (orders, 0, votes));
        }
        CertifiedRedemption[] memory items = new CertifiedRedemption[](orders.length);
        for (uint256 i = 0; i < orders.length; ++i) {
            items[i] = certified(orders[i]);
        }
        return abi.encodeCall(IFastPay.redeemMany, (items));
    }

    function _succeeds(bytes memory call) private {
        vm.prank(relayer);
        (bool success,) = address(fastPay).call(call);
        assertTrue(success);
    }
}
