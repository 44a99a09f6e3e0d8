// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title The guardian's pause: bounded, and with a cool-down
contract PauseTest is FastPayTest {
    uint256 private constant DURATION = 1 days;
    uint256 private constant COOLDOWN = 7 days;

    /// @dev The trees have the other functions that move value.
    function test_DepositsWithAPermitStop() public {
        token.transfer(alice, 1);
        vm.prank(alice); // the allowance stands in for the permit
        token.approve(address(fastPay), 1);
        vm.prank(guardian);
        fastPay.pause();
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PausedUntil.selector, block.timestamp + DURATION));
        vm.prank(alice);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 1, block.timestamp, 27, 0, 0);
    }

    /// @dev However the guardian plays, the contract runs at least as long as the cool-down between two pauses.
    function testFuzz_ItRunsBetweenPauses(uint256 seed) public {
        uint256 lastEnd = 0;
        for (uint256 i = 0; i < 20; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            skip(seed % 3 days);
            vm.prank(guardian);
            if (seed & (1 << 200) == 0) {
                try fastPay.unpause() {
                    lastEnd = block.timestamp;
                } catch {}
                continue;
            }
            try fastPay.pause() {
                assertTrue(lastEnd == 0 || block.timestamp >= lastEnd + COOLDOWN, "too early");
                assertEq(fastPay.pausedUntil(), block.timestamp + DURATION);
                lastEnd = block.timestamp + DURATION;
            } catch {}
        }
    }
}
