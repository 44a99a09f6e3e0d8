// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CapRaise, ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {Authority, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Blocks} from "../contracts/libraries/Blocks.sol";
import {VoteFiles} from "./VoteFiles.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title What operators bring to the council, apart from committees (`fastpay-node committee announce`, `install`)
/// @notice
/// ```
/// CONTRACT=0x… RAISE=raise.json VOTES=a.json,…        forge script script/Council.s.sol --sig "announceCap()" …
/// CONTRACT=0x… RAISE=raise.json                       forge script … --sig "endorse()" …
/// CONTRACT=0x… RAISE=raise.json                       forge script … --sig "raiseCap()" …
/// CONTRACT=0x… BLOCK=… VOTES=a.json,…                 forge script … --sig "heartbeat()" …
/// CONTRACT=0x… CHECKPOINT=0x… VOTES=a.json,…          forge script … --sig "adopt()" …
/// ```
/// with `--rpc-url $RPC_URL --private-key $KEY --broadcast`. `CONTRACT` is FastPay's address. Anyone may send each of them,
/// but `endorse` (the guardian).
///
/// `RAISE`: `{"epoch": 0, "asset": "0x…", "cap": 1000000000, "deadline": 1790000000}`.
///
/// `VOTES`: see `VoteFiles`. The epoch in them is the current one. `BLOCK` is the number of the block whose hash the votes
/// name: one of the last 8,191, or of the last 256 where the chain keeps no history of them (EIP-2935).
contract Council is Script {
    /// @notice Announces a higher deposit cap.
    function announceCap() external {
        IFastPay fastPay = _fastPay();
        CapRaise memory raise = _raise();
        bytes32 id = fastPay.council().capRaiseDigest(raise);
        bytes memory votes = _currentVotes(fastPay, id, raise.epoch);
        vm.startBroadcast();
        fastPay.council().announceCap(raise, votes);
        vm.stopBroadcast();
        _showClock(fastPay.council(), id);
    }

    /// @notice Endorses a raise of a cap.
    function endorse() external {
        ICouncil council = _fastPay().council();
        bytes32 id = council.capRaiseDigest(_raise());
        vm.startBroadcast();
        council.endorse(id);
        vm.stopBroadcast();
        _showClock(council, id);
    }

    /// @notice Raises a deposit cap.
    function raiseCap() external {
        IFastPay fastPay = _fastPay();
        CapRaise memory raise = _raise();
        vm.startBroadcast();
        fastPay.council().raiseCap(raise);
        vm.stopBroadcast();
        console.log("the deposit cap is", fastPay.depositCap(raise.asset));
    }

    /// @notice Shows that the committee is there.
    function heartbeat() external {
        IFastPay fastPay = _fastPay();
        uint256 blockNumber = vm.envUint("BLOCK");
        bytes32 digest = fastPay.council().heartbeatDigest(fastPay.epoch(), Blocks.hashOf(blockNumber));
        bytes memory votes = _currentVotes(fastPay, digest, fastPay.epoch());
        vm.startBroadcast();
        fastPay.council().heartbeat(blockNumber, votes);
        vm.stopBroadcast();
    }

    /// @notice Adopts a rebuilt checkpoint.
    function adopt() external {
        IFastPay fastPay = _fastPay();
        bytes32 checkpoint = vm.envBytes32("CHECKPOINT");
        bytes32 digest = fastPay.council().adoptionDigest(fastPay.epoch(), checkpoint);
        bytes memory votes = _currentVotes(fastPay, digest, fastPay.epoch());
        vm.startBroadcast();
        fastPay.council().adopt(checkpoint, votes);
        vm.stopBroadcast();
    }

    /// @notice The raise in a file.
    function raiseOf(string memory json) public pure returns (CapRaise memory) {
        uint256 cap = vm.parseJsonUint(json, ".cap");
        require(cap <= type(uint128).max, "the cap is too large");
        return CapRaise({
            epoch: _uint64(json, ".epoch"),
            asset: vm.parseJsonAddress(json, ".asset"),
            // forge-lint: disable-next-line(unsafe-typecast) -- checked above
            cap: uint128(cap),
            deadline: _uint64(json, ".deadline")
        });
    }

    function _fastPay() private view returns (IFastPay) {
        return IFastPay(payable(vm.envAddress("CONTRACT")));
    }

    function _raise() private view returns (CapRaise memory) {
        return raiseOf(vm.readFile(vm.envString("RAISE")));
    }

    function _currentVotes(IFastPay fastPay, bytes32 digest, uint256 epoch)
        private
        view
        returns (bytes memory)
    {
        Authority[] memory members = fastPay.committee(fastPay.epoch());
        return VoteFiles.pack(members, digest, epoch, VoteFiles.fromEnvironment("VOTES"));
    }

    function _showClock(ICouncil council, bytes32 id) private view {
        (,,, uint256 raisableAt, uint256 lapsesAt,,) = council.clockOf(id);
        console.log("id", vm.toString(id));
        console.log("can be raised from", raisableAt, "until", lapsesAt);
    }

    function _uint64(string memory json, string memory key) private pure returns (uint64) {
        uint256 value = vm.parseJsonUint(json, key);
        require(value <= type(uint64).max, string.concat(key, " is too large"));
        // forge-lint: disable-next-line(unsafe-typecast) -- checked above
        return uint64(value);
    }
}
