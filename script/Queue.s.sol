// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {VoteFiles} from "./VoteFiles.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title What operators do about redemptions that wait
/// @notice
/// ```
/// CONTRACT=0x… EPOCH=… SECONDS=…                    forge script script/Queue.s.sol --sig "postpone()" …
/// CONTRACT=0x… REDEMPTION=order.json VOTES=a.json,… forge script script/Queue.s.sol --sig "execute()" …
/// CONTRACT=0x… REDEMPTION=order.json VOTES=a.json,… forge script script/Queue.s.sol --sig "release()" …
/// ```
/// with `--rpc-url $RPC_URL --private-key $KEY --broadcast`. Only the guardian may postpone; anyone may send the others.
/// `execute` needs `VOTES` only for a redemption of a compromised epoch. For `VOTES` see `VoteFiles`; the epoch in them is
/// the current one. `REDEMPTION`:
/// ```
/// { "sender": "0x…32 bytes", "recipient": "0x…", "asset": "0x…", "amount": 1, "fee": 0, "sequence": 0, "memo": "0x…32 bytes" }
/// ```
contract Queue is Script {
    /// @notice Postpones all redemptions that an epoch's votes queued.
    function postpone() external {
        IFastPay fastPay = _fastPay();
        vm.startBroadcast();
        // forge-lint: disable-next-line(unsafe-typecast) -- the contract refuses an epoch that it does not have
        fastPay.postpone(uint64(vm.envUint("EPOCH")), vm.envUint("SECONDS"));
        vm.stopBroadcast();
    }

    /// @notice Has a redemption paid whose time has come.
    function execute() external {
        IFastPay fastPay = _fastPay();
        Redemption memory order = redemptionOf(vm.readFile(vm.envString("REDEMPTION")));
        (,,, bool needsVotes) = fastPay.queued(order.sender, order.sequence);
        bytes memory votes;
        if (needsVotes) {
            Redemption[] memory batch = new Redemption[](1);
            batch[0] = order;
            votes = _votes(fastPay, fastPay.redemptionBatchVoteDigest(fastPay.epoch(), batch));
        }
        vm.startBroadcast();
        fastPay.executeQueued(order, votes);
        vm.stopBroadcast();
    }

    /// @notice Takes a redemption of a compromised epoch out of the queue.
    function release() external {
        IFastPay fastPay = _fastPay();
        Redemption memory order = redemptionOf(vm.readFile(vm.envString("REDEMPTION")));
        bytes memory votes = _votes(fastPay, fastPay.releaseVoteDigest(fastPay.epoch(), order));
        vm.startBroadcast();
        fastPay.releaseQueued(order, votes);
        vm.stopBroadcast();
        console.log("released", vm.toString(order.sender), order.sequence);
    }

    /// @notice The redemption in a file.
    function redemptionOf(string memory json) public pure returns (Redemption memory) {
        return Redemption({
            sender: vm.parseJsonBytes32(json, ".sender"),
            recipient: vm.parseJsonAddress(json, ".recipient"),
            asset: vm.parseJsonAddress(json, ".asset"),
            // A value that does not fit gives another redemption, which the contract does not know.
            // forge-lint: disable-next-item(unsafe-typecast)
            amount: uint128(vm.parseJsonUint(json, ".amount")),
            fee: uint128(vm.parseJsonUint(json, ".fee")),
            sequence: uint64(vm.parseJsonUint(json, ".sequence")),
            memo: vm.parseJsonBytes32(json, ".memo")
        });
    }

    function _fastPay() private view returns (IFastPay) {
        return IFastPay(payable(vm.envAddress("CONTRACT")));
    }

    function _votes(IFastPay fastPay, bytes32 digest) private view returns (bytes memory) {
        Authority[] memory members = fastPay.committee(fastPay.epoch());
        return VoteFiles.pack(members, digest, fastPay.epoch(), VoteFiles.fromEnvironment("VOTES"));
    }
}
