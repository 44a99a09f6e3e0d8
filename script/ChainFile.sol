// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {AssetCap, Authority, IFastPay, SafetyParameters} from "../contracts/interfaces/IFastPay.sol";
import {KnownKeys} from "./KnownKeys.sol";
import {Vm} from "forge-std/Vm.sol";

/// @title The parameters of a deployment: one JSON file for each chain
/// @notice
/// ```
/// {
///   "chainId": 1,
///   "authorities": [{ "votingKey": "0x…32 bytes", "redemptionKey": "0x…20 bytes" }, …],
///   "guardian": "0x…20 bytes",
///   "recovery": "0x…20 bytes",
///   "safetyParameters": {
///     "pauseDuration": 86400, "pauseCooldown": 604800, "outflowWindow": 86400, "outflowShare": 1000,
///     "outflowDelay": 259200, "votesValidity": 1209600, "unlockWindow": 604800
///   },
///   "caps": [{ "asset": "0x…20 bytes", "cap": 1000000000 }, …]
/// }
/// ```
/// Authorities may come in any order. A zero guardian or recovery address stands for nobody; without a guardian
/// `outflowDelay` is at least 21 days. `caps` is optional: an asset that it does not name has no deposit cap, and the asset
/// zero is ETH. On a local chain (31337) only the authorities are
/// required. On any other chain a missing parameter is an error, because it can never be changed, and so is a key that
/// everybody knows (`KnownKeys`).
library ChainFile {
    uint256 internal constant LOCAL_CHAIN = 31_337;

    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// @notice The compiled council with the parameters of the file.
    /// @param fastPay Where its contract is, or will be.
    function councilCreation(string memory json, IFastPay fastPay) internal view returns (bytes memory) {
        return bytes.concat(vm.getCode("Council.sol:Council"), abi.encode(fastPay, recovery(json)));
    }

    /// @notice The compiled contract with the parameters of the file.
    /// @param council Where its council is, already deployed.
    function fastPayCreation(string memory json, address guardian_, ICouncil council, AssetCap[] memory caps_)
        internal
        view
        returns (bytes memory)
    {
        return bytes.concat(
            vm.getCode("FastPay.sol:FastPay"),
            abi.encode(authorities(json), guardian_, council, safetyParameters(json), caps_)
        );
    }

    /// @notice Whether a contract has the runtime code that a creation code leaves at its address in a block at a time. The
    /// creation is run in a simulation, which is undone.
    function isCreation(address existing, bytes memory creation, uint256 blockNumber, uint256 time)
        internal
        returns (bool same)
    {
        bytes memory code = existing.code;
        uint256 state = vm.snapshotState();
        vm.roll(blockNumber);
        vm.warp(time);
        // A contract's first creation has the nonce 1, and nothing may stand where it puts the committee.
        vm.setNonceUnsafe(existing, 1);
        address committee = vm.computeCreateAddress(existing, 1);
        vm.etch(committee, "");
        vm.setNonceUnsafe(committee, 0);
        vm.etch(existing, creation);
        (bool success, bytes memory left) = existing.call("");
        require(success, "the file's parameters cannot be deployed");
        same = keccak256(left) == keccak256(code);
        require(vm.revertToState(state), "the simulation could not be undone");
    }

    /// @notice Reverts if the guardian is a member, or, unless the chain is local, if anybody could have one of the keys.
    function requireSafeKeys(Authority[] memory list, address guardian_, address recovery_) internal view {
        for (uint256 i = 0; i < list.length; ++i) {
            require(list[i].redemptionKey != guardian_, "the guardian is a member of the committee");
        }
        if (block.chainid == LOCAL_CHAIN) return;
        (address[] memory known, bytes32[] memory votingKeys) =
            (KnownKeys.addresses(), KnownKeys.votingKeys());
        for (uint256 i = 0; i < list.length; ++i) {
            _requireUnknown(KnownKeys.has(known, list[i].redemptionKey), vm.toString(list[i].redemptionKey));
            _requireUnknown(KnownKeys.has(votingKeys, list[i].votingKey), vm.toString(list[i].votingKey));
        }
        _requireUnknown(KnownKeys.has(known, guardian_), vm.toString(guardian_));
        _requireUnknown(KnownKeys.has(known, recovery_), vm.toString(recovery_));
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

    /// @notice Can pause, postpone and endorse.
    /// @param local The guardian on a local chain, unless the file names one.
    function guardian(string memory json, address local) internal view returns (address) {
        return _has(json, ".guardian") ? vm.parseJsonAddress(json, ".guardian") : local;
    }

    /// @notice May announce a recovery.
    function recovery(string memory json) internal view returns (address) {
        return _has(json, ".recovery") ? vm.parseJsonAddress(json, ".recovery") : address(0);
    }

    /// @notice What cannot be changed any more.
    function safetyParameters(string memory json) internal view returns (SafetyParameters memory) {
        // `_parameter` refuses a value that does not fit its type.
        return SafetyParameters({
            pauseDuration: uint32(_parameter(json, "pauseDuration", 1 days, type(uint32).max)),
            pauseCooldown: uint32(_parameter(json, "pauseCooldown", 7 days, type(uint32).max)),
            outflowWindow: uint32(_parameter(json, "outflowWindow", 1 days, type(uint32).max)),
            outflowShare: uint16(_parameter(json, "outflowShare", 5000, type(uint16).max)),
            outflowDelay: uint32(_parameter(json, "outflowDelay", 3 days, type(uint32).max)),
            votesValidity: uint32(_parameter(json, "votesValidity", 14 days, type(uint32).max)),
            unlockWindow: uint32(_parameter(json, "unlockWindow", 7 days, type(uint32).max))
        });
    }

    /// @notice The deposit caps.
    function caps(string memory json) internal view returns (AssetCap[] memory list) {
        uint256 size = 0;
        while (vm.keyExistsJson(json, _cap(size))) ++size;

        list = new AssetCap[](size);
        for (uint256 i = 0; i < size; ++i) {
            uint256 cap = vm.parseJsonUint(json, string.concat(_cap(i), ".cap"));
            require(cap <= type(uint128).max, "a cap is too large");
            // forge-lint: disable-next-item(unsafe-typecast) -- checked above
            list[i] = AssetCap({
                asset: vm.parseJsonAddress(json, string.concat(_cap(i), ".asset")), cap: uint128(cap)
            });
        }
    }

    function _parameter(string memory json, string memory name, uint256 local, uint256 max)
        private
        view
        returns (uint256 value)
    {
        string memory key = string.concat(".safetyParameters.", name);
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

    function _cap(uint256 index) private pure returns (string memory) {
        return string.concat(".caps[", vm.toString(index), "]");
    }

    function _requireUnknown(bool known, string memory key) private pure {
        require(!known, string.concat("everybody knows the secret of ", key));
    }
}
