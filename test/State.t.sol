// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Holdings} from "../contracts/types/Holding.sol";
import {State, States} from "../contracts/types/State.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {stdError} from "forge-std/StdError.sol";

/// @title The parts that share a slot, each on its own
contract StateTest is FastPayTest {
    bytes32 private constant SLOT = bytes32(uint256(3));

    // ------------------------------------------------------------------------------------- the parts

    function testFuzz_ADepositChangesTheIndexAlone(uint256 bits) public pure {
        State before = State.wrap(bits & ~uint256(1)); // not the last
        State afterwards = before.withNextIndex();
        assertEq(afterwards.lastTransactionIndex(), before.lastTransactionIndex() + 1);
        assertEq(State.unwrap(afterwards) ^ State.unwrap(before), 1);
    }

    function testFuzz_ARotationChangesTheEpochAlone(uint256 bits) public pure {
        State before = State.wrap(bits & ~uint256(1 << 48));
        State afterwards = before.withNextEpoch();
        assertEq(afterwards.epoch(), before.epoch() + 1);
        assertEq(State.unwrap(afterwards) ^ State.unwrap(before), 1 << 48);
    }

    function testFuzz_APauseChangesItsEndAlone(uint256 bits, uint40 until) public pure {
        State before = State.wrap(bits);
        State afterwards = before.withPause(until);
        assertEq(afterwards.pausedUntil(), until);
        assertEq(State.unwrap(afterwards.withPause(before.pausedUntil())), bits);
        _assertSameBut(before, afterwards, 80, 40);
    }

    function testFuzz_EtherChangesItsHoldingAlone(uint256 bits, uint88 balance, uint48 fullAt) public pure {
        State before = State.wrap(bits);
        State afterwards = before.withEtherHolding(balance, fullAt);
        (uint128 balanceRead, uint48 fullAtRead) = afterwards.etherHolding();
        assertEq(balanceRead, balance);
        assertEq(fullAtRead, fullAt);
        (balanceRead, fullAtRead) = before.etherHolding();
        assertEq(State.unwrap(afterwards.withEtherHolding(balanceRead, fullAtRead)), bits);
        _assertSameBut(before, afterwards, 120, 136);
    }

    function testFuzz_ATokensHoldingIsReadAsItWasWritten(uint128 balance, uint48 fullAt) public pure {
        (uint128 balanceRead, uint48 fullAtRead) = Holdings.pack(balance, fullAt).parts();
        assertEq(balanceRead, balance);
        assertEq(fullAtRead, fullAt);
    }

    // -------------------------------------------------------------------------------------- the ends

    function test_RevertIf_TheIndexHasNoNextNumber() public {
        fundEther(1 ether);
        _oneDepositIsLeft();
        fundEther(1 ether);
        assertEq(fastPay.lastTransactionIndex(), type(uint48).max);
        vm.deal(alice, 1);
        vm.expectRevert(stdError.arithmeticError);
        vm.prank(alice);
        fastPay.depositEther{value: 1}(ACCOUNT);
        assertHolding(ETHER, 2 ether, 0);
        assertEq(fastPay.epoch(), 0);
        redeem(redemption(ETHER, 2 ether, 0, 0)); // what is held can leave
    }

    function test_RevertIf_TheLastEpochIsRotated() public {
        fundEther(1 ether);
        uint64 last = type(uint32).max;
        vm.store(address(fastPay), SLOT, vm.load(address(fastPay), SLOT) | bytes32(uint256(last) << 48));
        // The committee of an epoch that nobody can get to: the code of epoch 0, where the last one would be.
        vm.etch(_codeOf(last), vm.computeCreateAddress(address(fastPay), 1).code);
        assertEq(fastPay.epoch(), last);
        Authority[] memory next = authoritiesFrom(4, 4);
        bytes memory votes = votesOf(0, 3, fastPay.committeeVoteDigest(next, guardian));
        vm.expectRevert(stdError.arithmeticError);
        fastPay.rotate(next, guardian, votes);
        assertHolding(ETHER, 1 ether, 0);
    }

    /// @dev All that shares the slot, at its most: a deposit, a redemption and a pause leave the others' parts alone.
    function test_EveryPartAtItsMost() public {
        fundEther(ETHER_CAP);
        _oneDepositIsLeft();
        assertEq(fastPay.outflowAvailable(ETHER), ETHER_CAP);
        redeem(redemption(ETHER, ETHER_CAP, 0, 0));
        assertHolding(ETHER, 0, 0);
        assertEq(fastPay.outflowAvailable(ETHER), 0);
        fundEther(ETHER_CAP);
        assertHolding(ETHER, ETHER_CAP, 0);
        assertEq(fastPay.outflowAvailable(ETHER), 0, "a deposit filled the bucket");
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

    function _oneDepositIsLeft() private {
        uint256 others = uint256(vm.load(address(fastPay), SLOT)) & ~uint256(type(uint48).max);
        vm.store(address(fastPay), SLOT, bytes32(others | (type(uint48).max - 1)));
    }

    function _codeOf(uint64 epoch) private view returns (address) {
        return vm.computeCreateAddress(address(fastPay), uint256(epoch) + 1);
    }
}
