// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, Brakes, IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract ConstructorTreeTest is TreeTest {
    function test_RevertWhen_ABrakeIsBelowItsLeast() external {
        _fails(_with(0, 1 hours - 1), "pauseDuration", 1 hours - 1, 1 hours, 7 days);
        _fails(_with(2, 1 hours - 1), "outflowWindow", 1 hours - 1, 1 hours, 7 days);
        _fails(_with(3, 99), "outflowShare", 99, 100, 10_000);
        _fails(_with(4, 1 hours - 1), "outflowDelay", 1 hours - 1, 1 hours, 7 days);
        _fails(_with(5, 1 days - 1), "votesValidity", 1 days - 1, 1 days, 90 days);
    }

    function test_RevertWhen_ABrakeIsAboveItsMost() external {
        _fails(_with(0, 7 days + 1), "pauseDuration", 7 days + 1, 1 hours, 7 days);
        _fails(_with(1, 365 days + 1), "pauseCooldown", 365 days + 1, 1 days, 365 days);
        _fails(_with(2, 7 days + 1), "outflowWindow", 7 days + 1, 1 hours, 7 days);
        _fails(_with(3, 10_001), "outflowShare", 10_001, 100, 10_000);
        _fails(_with(4, 7 days + 1), "outflowDelay", 7 days + 1, 1 hours, 7 days);
        _fails(_with(5, 90 days + 1), "votesValidity", 90 days + 1, 1 days, 90 days);
    }

    function test_RevertWhen_TheCoolDownIsShorterThanAPause() external {
        _fails(_with(1, 1 days - 1), "pauseCooldown", 1 days - 1, 1 days, 365 days);
    }

    function test_RevertWhen_TheCommitteeIsUnsound() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 3));
        this.deployWith(authorities(3), brakes());
    }

    function test_WhenAllIsSound() external {
        vm.roll(77);
        // On the bounds is within them.
        Brakes memory given = Brakes(7 days, 365 days, 1 hours, 100, 1 hours, 90 days);
        IFastPay made = this.deployWith(committeeOf(0), given);
        assertEq(made.epoch(), 0);
        assertEq(made.guardian(), guardian);
        assertEq(abi.encode(made.committee(0)), abi.encode(committeeOf(0)));
        assertEq(abi.encode(made.brakes()), abi.encode(given));
        assertEq(made.deploymentBlock(), 77);
        assertEq(made.pausedUntil() + made.nextPauseAt() + made.lastTransactionIndex(), 0);
    }

    /// @dev A call of its own, so that its revert can be expected.
    function deployWith(Authority[] memory members, Brakes memory given) external returns (IFastPay made) {
        bytes memory code =
            bytes.concat(vm.getCode("FastPay.sol:FastPay"), abi.encode(members, guardian, given));
        assembly ("memory-safe") {
            made := create(0, add(code, 0x20), mload(code))
            if iszero(made) {
                returndatacopy(0, 0, returndatasize())
                revert(0, returndatasize())
            }
        }
    }

    /// @dev The usual brakes, but for the one at `place`.
    function _with(uint256 place, uint32 value) private pure returns (Brakes memory given) {
        given = brakes();
        if (place == 0) given.pauseDuration = value;
        if (place == 1) given.pauseCooldown = value;
        if (place == 2) given.outflowWindow = value;
        // forge-lint: disable-next-line(unsafe-typecast)
        if (place == 3) given.outflowShare = uint16(value);
        if (place == 4) given.outflowDelay = value;
        if (place == 5) given.votesValidity = value;
    }

    function _fails(Brakes memory given, string memory name, uint256 value, uint256 min, uint256 max)
        private
    {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidBrake.selector, name, value, min, max));
        this.deployWith(authorities(4), given);
    }
}
