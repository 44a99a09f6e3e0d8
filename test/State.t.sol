// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Caps} from "../contracts/libraries/Caps.sol";
import {Holding} from "../contracts/types/Holding.sol";
import {State} from "../contracts/types/State.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {stdError} from "forge-std/StdError.sol";

/// @title The parts that share a slot, each on its own
contract StateTest is FastPayTest {
    bytes32 private constant SLOT = bytes32(uint256(3));

    // ------------------------------------------------------------------------------------- the parts

    function testFuzz_AnEventChangesTheIndexAlone(uint256 bits) public pure {
        State before = State.wrap(bits & ~uint256(1)); // not the last
        State afterwards = before.withNextIndex();
        assertEq(afterwards.lastTransactionIndex(), before.lastTransactionIndex() + 1);
        assertEq(State.unwrap(afterwards) ^ State.unwrap(before), 1);
    }

    function testFuzz_AnInstallationChangesTheEpochAlone(uint256 bits) public pure {
        State before = State.wrap(bits & ~uint256(1 << 48));
        State afterwards = before.withNextEpoch();
        assertEq(afterwards.epoch(), before.epoch() + 1);
        assertEq(State.unwrap(afterwards) ^ State.unwrap(before), 1 << 48);
    }

    function testFuzz_APauseChangesItsEndAlone(uint256 bits, uint40 time) public pure {
        uint256 until = time >> 4; // 36 bits
        State before = State.wrap(bits);
        State afterwards = before.withPause(until);
        assertEq(afterwards.pausedUntil(), until);
        assertEq(State.unwrap(afterwards.withPause(before.pausedUntil())), bits);
        _assertSameBut(before, afterwards, 68, 36);
    }

    function testFuzz_EtherChangesItsHoldingAlone(uint256 bits, uint88 balance, uint48 fullAt, uint16 cap)
        public
        pure
    {
        State before = State.wrap(bits);
        Holding holding = Holding.wrap(0).withBalance(balance, fullAt).withCap(cap);
        State afterwards = before.withEtherHolding(holding);
        assertEq(Holding.unwrap(afterwards.etherHolding()), Holding.unwrap(holding));
        assertEq(State.unwrap(afterwards.withEtherHolding(before.etherHolding())), bits);
        _assertSameBut(before, afterwards, 104, 152);
    }

    function testFuzz_EachPartOfAHoldingIsChangedAlone(
        uint256 bits,
        uint128 balance,
        uint48 fullAt,
        uint16 cap,
        bool claims
    ) public pure {
        Holding before = Holding.wrap(bits & ((1 << 193) - 1));
        Holding holding = before.withBalance(balance, fullAt);
        assertEq(holding.balance(), balance);
        assertEq(holding.fullAt(), fullAt);
        assertEq(holding.cap(), before.cap());
        assertEq(holding.hasClaims(), before.hasClaims());
        holding = holding.withCap(cap);
        assertEq(holding.cap(), cap);
        assertEq(holding.hasClaims(), before.hasClaims());
        holding = holding.withClaims(claims);
        assertEq(holding.hasClaims(), claims);
        assertEq(holding.balance(), balance);
        assertEq(holding.fullAt(), fullAt);
        assertEq(holding.cap(), cap);
    }

    /// @dev Never more than what was given, and less by a 256th at most.
    function testFuzz_ACapIsRoundedDown(uint128 cap, uint256 shift) public pure {
        cap = cap >> (shift % 128);
        uint256 read = Caps.decode(Caps.encode(cap));
        assertLe(read, cap);
        assertLe((cap - read) * 256, cap);
        assertEq(Caps.decode(Caps.encode(uint128(read))), read);
        if (cap < 512) assertEq(read, cap);
    }

    // -------------------------------------------------------------------------------------- the ends

    function test_RevertIf_TheIndexHasNoNextNumber() public {
        fundEther(1 ether);
        _eventsLeft(1);
        fundEther(1 ether);
        assertEq(fastPay.lastTransactionIndex(), type(uint48).max);
        vm.deal(alice, 1);
        vm.expectRevert(stdError.assertionError);
        vm.prank(alice);
        fastPay.depositEther{value: 1}(ACCOUNT);
        assertHolding(ETHER, 2 ether, 0);
        assertEq(fastPay.epoch(), 0);
    }

    function test_RevertIf_TheLastEpochIsRotated() public {
        fundEther(1 ether);
        uint64 last = (1 << 20) - 1;
        vm.store(address(fastPay), SLOT, vm.load(address(fastPay), SLOT) | bytes32(uint256(last) << 48));
        // The committee of an epoch that nobody can get to: the code of epoch 0, where the last one would be.
        vm.etch(_codeOf(last), vm.computeCreateAddress(address(fastPay), 1).code);
        assertEq(fastPay.epoch(), last);
        Authority[] memory next = authoritiesFrom(4, 4);
        vm.prank(address(fastPay.council()));
        vm.expectRevert(stdError.assertionError);
        fastPay.install(next, guardian, last + 1, 0);
        assertHolding(ETHER, 1 ether, 0);
    }

    /// @dev All that shares the slot, at its most: a deposit, a redemption and a pause leave the others' parts alone.
    function test_EveryPartAtItsMost() public {
        fundEther(ETHER_CAP);
        _eventsLeft(2);
        assertEq(fastPay.outflowAvailable(ETHER), ETHER_CAP);
        redeem(redemption(ETHER, ETHER_CAP, 0, 0));
        assertHolding(ETHER, 0, 0);
        assertEq(fastPay.outflowAvailable(ETHER), 0);
        fundEther(ETHER_CAP);
        assertHolding(ETHER, ETHER_CAP, 0);
        assertEq(fastPay.outflowAvailable(ETHER), ETHER_CAP, "a deposit refills the bucket");
        assertEq(fastPay.lastTransactionIndex(), type(uint48).max);
        assertEq(fastPay.epoch(), 0);
        assertEq(fastPay.pausedUntil(), 0);
        vm.prank(guardian);
        fastPay.pause();
        assertHolding(ETHER, ETHER_CAP, 0);
        assertEq(fastPay.pausedUntil(), vm.getBlockTimestamp() + 1 days);
    }

    // --------------------------------------------------------------------------------------- private

    function _assertSameBut(State a, State b, uint256 bit, uint256 width) private pure {
        uint256 others = ~(((1 << width) - 1) << bit);
        assertEq(State.unwrap(a) & others, State.unwrap(b) & others);
    }

    function _eventsLeft(uint256 count) private {
        uint256 others = uint256(vm.load(address(fastPay), SLOT)) & ~uint256(type(uint48).max);
        vm.store(address(fastPay), SLOT, bytes32(others | (type(uint48).max - count)));
    }

    function _codeOf(uint64 epoch) private view returns (address) {
        return vm.computeCreateAddress(address(fastPay), uint256(epoch) + 1);
    }
}
