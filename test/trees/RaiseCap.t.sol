// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CapRaise, ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {CouncilTest} from "./CouncilTest.sol";

contract RaiseCapTreeTest is CouncilTest {
    function test_RevertGiven_ItWasNotAnnounced() external {
        CapRaise memory raise = raiseTo(2000 ether);
        _fails(raise, abi.encodeWithSelector(ICouncil.NotAnnounced.selector, council.capRaiseDigest(raise)));
    }

    function test_RevertWhen_ItsTimeHasNotCome() external {
        CapRaise memory raise = raiseTo(2000 ether);
        bytes32 id = announceCap(raise);
        endorse(id);
        uint256 installableAt = vm.getBlockTimestamp() + SHORT;
        vm.warp(installableAt - 1);
        _fails(raise, abi.encodeWithSelector(ICouncil.NotInstallable.selector, id, installableAt));
    }

    function test_RevertGiven_ACommitteeWasInstalledSince() external {
        CapRaise memory raise = raiseTo(2000 ether);
        bytes32 id = announceCap(raise);
        wait(LONG);
        rotate(committeeOf(1), guardian);
        _fails(raise, abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
    }

    function test_RevertWhen_ItWouldNotRaiseTheCap() external {
        CapRaise memory raise = raiseTo(1000 ether); // the same, rounded
        announceCap(raise);
        wait(LONG);
        _fails(raise, abi.encodeWithSelector(IFastPay.InvalidCap.selector, ETHER, ETHER_CAP_SET, 1000 ether));
    }

    function test_WhenItsTimeHasCome() external {
        CapRaise memory raise = raiseTo(2048);
        raise.cap = 1 << 100; // above all that can be counted
        bytes32 id = announceCap(raise);
        endorse(id);
        wait(SHORT);
        vm.expectEmit(address(fastPay));
        emit IFastPay.CapRaised(ETHER, ETHER_CAP);
        vm.prank(relayer); // anyone
        council.raiseCap(raise);
        assertEq(fastPay.depositCap(ETHER), ETHER_CAP);
        _fails(raise, abi.encodeWithSelector(IFastPay.InvalidCap.selector, ETHER, ETHER_CAP, raise.cap));
    }

    function _fails(CapRaise memory raise, bytes memory revertData) private {
        vm.expectRevert(revertData);
        council.raiseCap(raise);
    }
}
