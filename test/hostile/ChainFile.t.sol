// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, SafetyParameters} from "../../contracts/interfaces/IFastPay.sol";
import {ChainFile} from "../../script/ChainFile.sol";
import {Test} from "forge-std/Test.sol";

/// @title Files that deploy, or nearly
contract HostileChainFileTest is Test {
    string[7] private _names = [
        "pauseDuration",
        "pauseCooldown",
        "outflowWindow",
        "outflowShare",
        "outflowDelay",
        "votesValidity",
        "unlockWindow"
    ];

    /// forge-config: default.fuzz.runs = 32
    function testFuzz_AuthoritiesAreReadAsTheyWereWritten(uint256 size, uint256 seed) public view {
        size = bound(size, 0, 20);
        string memory list = "";
        for (uint256 i = 0; i < size; ++i) {
            bytes32 votingKey = keccak256(abi.encode(seed, i));
            list = string.concat(
                list,
                i == 0 ? "" : ",",
                _authority(vm.toString(votingKey), vm.toString(address(uint160(uint256(votingKey)))))
            );
        }
        Authority[] memory read = this.authorities(string.concat('{"authorities":[', list, "]}"));
        assertEq(read.length, size);
        for (uint256 i = 0; i < size; ++i) {
            if (i > 0) assertGt(uint256(read[i].votingKey), uint256(read[i - 1].votingKey));
            assertEq(read[i].redemptionKey, address(uint160(uint256(read[i].votingKey))));
        }
    }

    function testFuzz_ParametersAreReadAsTheyWereWritten(SafetyParameters memory given) public view {
        assertEq(abi.encode(this.parameters(_file(given, 7, 0))), abi.encode(given));
    }

    function testFuzz_RevertIf_AParameterDoesNotFitItsType(
        SafetyParameters memory given,
        uint256 which,
        uint256 value
    ) public {
        which = bound(which, 0, 6);
        value = bound(value, which == 3 ? 1 << 16 : 1 << 32, type(uint256).max);
        vm.expectRevert();
        this.parameters(_file(given, which, value));
    }

    /// @dev Nothing is taken for a committee that is none; if it is not JSON, it says so.
    function testFuzz_NoiseNamesNobody(string memory noise) public view {
        try this.authorities(noise) returns (Authority[] memory read) {
            assertEq(read.length, 0);
        } catch {}
    }

    function testFuzz_RevertIf_AKeyIsTooShortOrTooLong(uint256 length) public {
        length = bound(length, 0, 63);
        string memory digits = "0x";
        for (uint256 i = 0; i < length; ++i) {
            digits = string.concat(digits, "7");
        }
        string memory good = vm.toString(address(uint160(7)));
        vm.expectRevert();
        this.authorities(string.concat('{"authorities":[', _authority(digits, good), "]}"));
        if (length == 40) return;
        vm.expectRevert();
        this.authorities(
            string.concat('{"authorities":[', _authority(vm.toString(bytes32("a")), digits), "]}")
        );
    }

    // Calls of their own, so that what they revert with can be expected.

    function authorities(string memory json) external view returns (Authority[] memory) {
        return ChainFile.authorities(json);
    }

    function parameters(string memory json) external view returns (SafetyParameters memory) {
        return ChainFile.safetyParameters(json);
    }

    function _authority(string memory votingKey, string memory redemptionKey)
        private
        pure
        returns (string memory)
    {
        return string.concat('{"votingKey":"', votingKey, '","redemptionKey":"', redemptionKey, '"}');
    }

    /// @dev A file with these parameters, and another value in the place of the one at `which`.
    function _file(SafetyParameters memory given, uint256 which, uint256 value)
        private
        view
        returns (string memory list)
    {
        uint256[7] memory values = [
            uint256(given.pauseDuration),
            given.pauseCooldown,
            given.outflowWindow,
            given.outflowShare,
            given.outflowDelay,
            given.votesValidity,
            given.unlockWindow
        ];
        for (uint256 i = 0; i < 7; ++i) {
            string memory number = vm.toString(i == which ? value : values[i]);
            list = string.concat(list, i == 0 ? "" : ",", '"', _names[i], '":', number);
        }
        return string.concat('{"safetyParameters":{', list, "}}");
    }
}
