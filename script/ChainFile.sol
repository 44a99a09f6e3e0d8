// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, Brakes} from "../contracts/interfaces/IFastPay.sol";
import {Vm} from "forge-std/Vm.sol";

/// @title What a FastPay is deployed with: one JSON file for each chain
/// @notice
/// ```
/// {
///   "chainId": 1,
///   "authorities": [{ "votingKey": "0x…32 bytes", "redemptionKey": "0x…20 bytes" }, …],
///   "guardian": "0x…20 bytes",
///   "brakes": {
///     "pauseDuration": 86400, "pauseCooldown": 604800, "outflowWindow": 86400,
///     "outflowShare": 1000, "outflowDelay": 86400, "votesValidity": 604800
///   }
/// }
/// ```
/// Authorities in any order. A guardian of zero is nobody. A local chain (31337) may leave all but the authorities
/// out; on any other a missing parameter is an error, because it can never be changed.
library ChainFile {
    uint256 internal constant LOCAL_CHAIN = 31_337;

    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// @notice The compiled contract with what the file says.
    function creationCode(string memory json, address guardian_) internal view returns (bytes memory) {
        return bytes.concat(
            vm.getCode("FastPay.sol:FastPay"), abi.encode(authorities(json), guardian_, brakes(json))
        );
    }

    /// @notice Reverts if the file is for another chain than this.
    function requireThisChain(string memory json) internal view {
        if (block.chainid == LOCAL_CHAIN && !vm.keyExistsJson(json, ".chainId")) return;
        require(vm.keyExistsJson(json, ".chainId"), "chainId is missing");
        require(vm.parseJsonUint(json, ".chainId") == block.chainid, "the file is for another chain");
    }

    /// @notice The authorities, sorted by voting key.
    function authorities(string memory json) internal view returns (Authority[] memory list) {
        uint256 size = 0;
        while (vm.keyExistsJson(json, _authority(size))) ++size;

        list = new Authority[](size);
        for (uint256 i = 0; i < size; ++i) {
            Authority memory next = Authority({
                votingKey: vm.parseJsonBytes32(json, string.concat(_authority(i), ".votingKey")),
                redemptionKey: vm.parseJsonAddress(json, string.concat(_authority(i), ".redemptionKey"))
            });
            uint256 place = i;
            for (; place > 0 && list[place - 1].votingKey > next.votingKey; --place) {
                list[place] = list[place - 1];
            }
            list[place] = next;
        }
    }

    /// @notice Who can pause.
    /// @param local Who can on a local chain, unless the file says otherwise.
    function guardian(string memory json, address local) internal view returns (address) {
        return _has(json, ".guardian") ? vm.parseJsonAddress(json, ".guardian") : local;
    }

    /// @notice What cannot be changed any more.
    function brakes(string memory json) internal view returns (Brakes memory) {
        // Each fits its type, or the file is wrong, and says so before a truncated value can.
        return Brakes({
            pauseDuration: uint32(_parameter(json, "pauseDuration", 1 days, type(uint32).max)),
            pauseCooldown: uint32(_parameter(json, "pauseCooldown", 7 days, type(uint32).max)),
            outflowWindow: uint32(_parameter(json, "outflowWindow", 1 days, type(uint32).max)),
            outflowShare: uint16(_parameter(json, "outflowShare", 5000, type(uint16).max)),
            outflowDelay: uint32(_parameter(json, "outflowDelay", 1 days, type(uint32).max)),
            votesValidity: uint32(_parameter(json, "votesValidity", 7 days, type(uint32).max))
        });
    }

    function _parameter(string memory json, string memory name, uint256 local, uint256 max)
        private
        view
        returns (uint256 value)
    {
        string memory key = string.concat(".brakes.", name);
        if (!_has(json, key)) return local;
        value = vm.parseJsonUint(json, key);
        require(value <= max, string.concat(name, " is too large"));
    }

    function _has(string memory json, string memory key) private view returns (bool present) {
        present = vm.keyExistsJson(json, key);
        require(present || block.chainid == LOCAL_CHAIN, string.concat(key, " is missing"));
    }

    function _authority(uint256 index) private pure returns (string memory) {
        return string.concat(".authorities[", vm.toString(index), "]");
    }
}
