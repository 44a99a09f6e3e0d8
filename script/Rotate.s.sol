// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Committees} from "../contracts/libraries/Committees.sol";
import {Votes} from "../contracts/libraries/Votes.sol";
import {ChainFile} from "./ChainFile.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title Brings the votes for the next committee to the contract
/// @notice
/// ```
/// CONTRACT=0x… COMMITTEE=next.json VOTES=a.json,b.json,c.json \
///     forge script script/Rotate.s.sol --rpc-url $RPC_URL --private-key $KEY --broadcast
/// ```
/// `COMMITTEE` has the next `authorities` and `guardian` (see `ChainFile`; without it the present one stays), and is what
/// the authorities voted for with `fastpay-node vote-committee`; the rest of it is not looked at. `VOTES` are
/// the files of the authorities, in any order: `{"epoch": …, "authority": "0x…voting key", "signature": "0x…65 bytes"}`.
/// Anyone may send them. Each vote is checked first, one that is no good is left out and named, and the first quorum
/// of good ones is sent.
contract Rotate is Script {
    /// @notice Rotates the contract that the environment names.
    function run() external {
        IFastPay fastPay = IFastPay(payable(vm.envAddress("CONTRACT")));
        string memory json = vm.readFile(vm.envString("COMMITTEE"));
        string[] memory paths = vm.envString("VOTES", ",");
        string[] memory files = new string[](paths.length);
        for (uint256 i = 0; i < files.length; ++i) {
            files[i] = vm.readFile(paths[i]);
        }
        (Authority[] memory authorities, address guardian, bytes memory votes) = prepare(fastPay, json, files);
        vm.startBroadcast();
        fastPay.rotate(authorities, guardian, votes);
        vm.stopBroadcast();
        console.log("epoch", fastPay.epoch(), "has begun; votes of the one before count until");
        console.log(fastPay.epochValidUntil(fastPay.epoch() - 1));
    }

    /// @notice What `rotate` is to be called with.
    /// @param json The next committee's file.
    /// @param files The votes' files.
    function prepare(IFastPay fastPay, string memory json, string[] memory files)
        public
        view
        returns (Authority[] memory authorities, address guardian, bytes memory votes)
    {
        authorities = ChainFile.authorities(json);
        bool named = vm.keyExistsJson(json, ".guardian");
        guardian = named ? vm.parseJsonAddress(json, ".guardian") : fastPay.guardian();
        bytes32 digest = fastPay.committeeVoteDigest(authorities, guardian);
        votes = _pack(fastPay.committee(fastPay.epoch()), digest, fastPay.epoch() + 1, files);
    }

    /// @dev A quorum of the votes that count, in the order of the committee.
    function _pack(Authority[] memory members, bytes32 digest, uint256 epoch, string[] memory files)
        private
        view
        returns (bytes memory votes)
    {
        uint256 quorum = Committees.quorum(members.length);
        uint256 count = 0;
        for (uint256 member = 0; member < members.length && count < quorum; ++member) {
            bytes memory signature = _signature(members[member], digest, epoch, files);
            if (signature.length == 0) continue;
            // forge-lint: disable-next-line(unsafe-typecast) -- a committee has 255 members at most
            votes = bytes.concat(votes, bytes1(uint8(member)), signature);
            ++count;
        }
        require(
            count == quorum,
            string.concat(
                "only ", vm.toString(count), " good votes, and ", vm.toString(quorum), " are needed"
            )
        );
    }

    /// @dev The member's good vote; empty if there is none.
    function _signature(Authority memory member, bytes32 digest, uint256 epoch, string[] memory files)
        private
        view
        returns (bytes memory)
    {
        for (uint256 i = 0; i < files.length; ++i) {
            if (vm.parseJsonBytes32(files[i], ".authority") != member.votingKey) continue;
            bytes memory signature = vm.parseJsonBytes(files[i], ".signature");
            string memory fault =
                _fault(member, digest, epoch, vm.parseJsonUint(files[i], ".epoch"), signature);
            if (bytes(fault).length == 0) return signature;
            console.log("the vote of authority", vm.toString(member.votingKey), fault);
        }
        return "";
    }

    function _fault(
        Authority memory member,
        bytes32 digest,
        uint256 epoch,
        uint256 itsEpoch,
        bytes memory signature
    ) private pure returns (string memory) {
        if (itsEpoch != epoch) return "is for another epoch";
        if (signature.length != 65) return "is not of 65 bytes";
        (bytes32 r, bytes32 s, uint8 v) = (bytes32(0), bytes32(0), uint8(signature[64]));
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
        }
        if (uint256(s) > Votes.S_MAX) return "is malleable";
        if (ecrecover(digest, v, r, s) != member.redemptionKey) {
            return "is not its signature of this committee and guardian";
        }
        return "";
    }
}
