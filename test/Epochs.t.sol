// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, CertifiedRedemption, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title One epoch after another, as FastPay sees it
contract EpochsTest is FastPayTest {
    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
    }

    // -------------------------------------------------------------------------------- what it does

    /// @dev The contract computes where a committee is from the number of contracts that it has created.
    function test_EveryCommitteeIsWhereItsEpochSays() public {
        for (uint64 epoch = 0; epoch < 130; ++epoch) {
            address code = vm.computeCreateAddress(address(fastPay), epoch + 1);
            assertEq(code.code.length, 1 + 4 * 64);
            assertEq(uint8(code.code[0]), 0, "the keys could run");
            rotate(authoritiesFrom(4 * uint256(epoch + 1), 4), guardian);
        }
        assertEq(fastPay.epoch(), 130);
        assertEq(vm.getNonce(address(fastPay)), 132);
        for (uint64 epoch = 0; epoch <= 130; epoch += 13) {
            bytes memory expected = abi.encode(authoritiesFrom(4 * uint256(epoch), 4));
            assertEq(abi.encode(fastPay.committee(epoch)), expected);
        }
    }

    // --------------------------------------------------------------------- votes of ended epochs

    function test_ARedeemedItemOfAnEndedEpochIsSkipped() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](1);
        items[0] = certified(redemption(ETHER, 1 ether, 0, 0));
        redeem(items[0].redemption);
        rotate(authoritiesFrom(10, 4), guardian);
        rotate(authoritiesFrom(20, 4), guardian);
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 0);
        fastPay.redeemMany(items);
    }

    // ------------------------------------------------------------------------- compromised epochs

    /// @dev The epochs from the first to before the current one, over the words that they are kept in.
    function testFuzz_TheEpochsSinceAreCompromised(uint256 epochs, uint256 since) public {
        epochs = bound(epochs, 1, 520);
        since = bound(since, 0, epochs);
        // Epochs that nobody installed one by one.
        bytes32 state = vm.load(address(fastPay), bytes32(uint256(3)));
        vm.store(address(fastPay), bytes32(uint256(3)), state | bytes32((epochs - 1) << 48));
        vm.setNonce(address(fastPay), uint64(epochs + 1));
        _installSince(uint64(since), 1);
        assertEq(fastPay.epoch(), epochs);
        for (uint64 epoch = 0; epoch < epochs + 2; ++epoch) {
            assertEq(fastPay.compromised(epoch), epoch >= since && epoch < epochs, vm.toString(epoch));
        }
    }

    function test_WhatWasCompromisedStays() public {
        _installSince(0, 1);
        _installSince(2, 2);
        assertTrue(fastPay.compromised(0));
        assertFalse(fastPay.compromised(1));
        _installSince(1, 3);
        assertTrue(fastPay.compromised(0) && fastPay.compromised(1) && fastPay.compromised(2));
    }

    function _installSince(uint64 since, uint256 first) private {
        Authority[] memory next = authoritiesFrom(10 * first, 4);
        vm.prank(address(fastPay.council()));
        fastPay.install(next, guardian, since, 0);
    }
}
