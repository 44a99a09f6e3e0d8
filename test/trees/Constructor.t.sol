// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {AssetCap, Authority, IFastPay, SafetyParameters} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract ConstructorTreeTest is TreeTest {
    function test_RevertWhen_ASafetyParameterIsBelowItsLeast() external {
        _fails(_with(0, 1 hours - 1), "pauseDuration", 1 hours - 1, 1 hours, 7 days);
        _fails(_with(2, 1 hours - 1), "outflowWindow", 1 hours - 1, 1 hours, 7 days);
        _fails(_with(3, 99), "outflowShare", 99, 100, 10_000);
        _fails(_with(4, 3 days - 1), "outflowDelay", 3 days - 1, 3 days, 30 days);
        _fails(_with(5, 14 days - 1), "votesValidity", 14 days - 1, 14 days, 90 days);
        _fails(_with(6, 3 days - 1), "unlockWindow", 3 days - 1, 3 days, 30 days);
    }

    function test_RevertWhen_ASafetyParameterIsAboveItsMost() external {
        _fails(_with(0, 7 days + 1), "pauseDuration", 7 days + 1, 1 hours, 7 days);
        _fails(_with(1, 365 days + 1), "pauseCooldown", 365 days + 1, 1 days, 365 days);
        _fails(_with(2, 7 days + 1), "outflowWindow", 7 days + 1, 1 hours, 7 days);
        _fails(_with(3, 10_001), "outflowShare", 10_001, 100, 10_000);
        _fails(_with(4, 30 days + 1), "outflowDelay", 30 days + 1, 3 days, 30 days);
        _fails(_with(5, 90 days + 1), "votesValidity", 90 days + 1, 14 days, 90 days);
        _fails(_with(6, 30 days + 1), "unlockWindow", 30 days + 1, 3 days, 30 days);
    }

    function test_RevertWhen_TheCoolDownIsShorterThanAPause() external {
        _fails(_with(1, 1 days - 1), "pauseCooldown", 1 days - 1, 1 days, 365 days);
    }

    function test_RevertWhen_NobodyIsGuardianAndWhatIsQueuedWaitsForLessThanThreeWeeks() external {
        guardian = address(0);
        _fails(_with(4, 3 days), "outflowDelay", 3 days, 21 days, 30 days);
        _fails(_with(4, 21 days - 1), "outflowDelay", 21 days - 1, 21 days, 30 days);
        _fails(_with(4, 30 days + 1), "outflowDelay", 30 days + 1, 21 days, 30 days);
        this.deployWith(committeeOf(0), _with(4, 21 days), new AssetCap[](0));
    }

    function test_RevertWhen_TheCouncilIsAnotherContracts() external {
        ICouncil other = fastPay.council();
        vm.expectRevert(abi.encodeWithSelector(IFastPay.CouncilOfAnother.selector, other));
        this.createWith(committeeOf(0), other, tight(), new AssetCap[](0));
    }

    function test_RevertWhen_TheCouncilWasDeployedMoreThanADayBefore() external {
        // Its 120 days until a recovery would end before the contract's. A day earlier is as early as it gets.
        uint256 deployedAt = vm.getBlockTimestamp();
        ICouncil young = deployCouncil();
        wait(1 days);
        this.createWith(committeeOf(0), young, tight(), new AssetCap[](0));
        ICouncil old = deployCouncil();
        deployedAt = vm.getBlockTimestamp();
        wait(1 days + 1);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.CouncilTooOld.selector, old, deployedAt));
        this.createWith(committeeOf(0), old, tight(), new AssetCap[](0));
    }

    function test_RevertWhen_TheCommitteeIsUnsound() external {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 3));
        this.deployWith(authorities(3), tight(), new AssetCap[](0));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 256));
        this.deployWith(authorities(256), tight(), new AssetCap[](0));
    }

    function test_RevertWhen_ADepositCapIsZero() external {
        AssetCap[] memory caps = new AssetCap[](1);
        caps[0] = AssetCap({asset: ETHER, cap: 0});
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCap.selector, ETHER, ETHER_CAP, 0));
        this.deployWith(authorities(4), tight(), caps);
    }

    function test_RevertWhen_AnAssetHasTwoDepositCaps() external {
        AssetCap[] memory caps = new AssetCap[](2);
        (caps[0], caps[1]) = (AssetCap(address(token), 100), AssetCap(address(token), 200));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCap.selector, address(token), 100, 200));
        this.deployWith(authorities(4), tight(), caps);
    }

    function test_WhenAllIsSound() external {
        vm.roll(77);
        // On the bounds is within them.
        SafetyParameters memory given =
            SafetyParameters(7 days, 365 days, 1 hours, 100, 30 days, 6 days, 3 days);
        vm.expectEmit();
        emit IFastPay.CommitteeInstalled(0, 0, committeeOf(0), guardian, 0, 0, 0);
        IFastPay made = this.deployWith(committeeOf(0), given, new AssetCap[](0));
        assertEq(made.epoch(), 0);
        assertEq(made.guardian(), guardian);
        assertEq(abi.encode(made.committee(0)), abi.encode(committeeOf(0)));
        assertEq(abi.encode(made.safetyParameters()), abi.encode(given));
        assertEq(made.deploymentBlock(), 77);
        assertEq(made.council().recovery(), recovery);
        assertEq(address(made.council().fastPay()), address(made));
        assertEq(made.depositCap(ETHER), ETHER_CAP);
        assertEq(made.depositCap(address(token)), CAP);
        assertEq(made.pausedUntil() + made.nextPauseAt() + made.lastTransactionIndex(), 0);
    }

    /// @dev A call of its own, so that its revert can be expected.
    function deployWith(Authority[] memory members, SafetyParameters memory given, AssetCap[] memory caps)
        external
        returns (IFastPay)
    {
        return createWith(members, deployCouncil(), given, caps);
    }

    function createWith(
        Authority[] memory members,
        ICouncil council,
        SafetyParameters memory given,
        AssetCap[] memory caps
    ) public returns (IFastPay made) {
        bytes memory code = bytes.concat(
            vm.getCode("FastPay.sol:FastPay"), abi.encode(members, guardian, council, given, caps)
        );
        assembly ("memory-safe") {
            made := create(0, add(code, 0x20), mload(code))
            if iszero(made) {
                returndatacopy(0, 0, returndatasize())
                revert(0, returndatasize())
            }
        }
    }

    /// @dev The usual parameters, but for the one at `place`.
    function _with(uint256 place, uint32 value) private pure returns (SafetyParameters memory given) {
        given = tight();
        if (place == 0) given.pauseDuration = value;
        if (place == 1) given.pauseCooldown = value;
        if (place == 2) given.outflowWindow = value;
        // forge-lint: disable-next-line(unsafe-typecast)
        if (place == 3) given.outflowShare = uint16(value);
        if (place == 4) given.outflowDelay = value;
        if (place == 5) given.votesValidity = value;
        if (place == 6) given.unlockWindow = value;
    }

    function _fails(
        SafetyParameters memory given,
        string memory name,
        uint256 value,
        uint256 min,
        uint256 max
    ) private {
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.InvalidSafetyParameter.selector, name, value, min, max)
        );
        this.deployWith(authorities(4), given, new AssetCap[](0));
    }
}
