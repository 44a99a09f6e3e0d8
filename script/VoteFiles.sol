// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority} from "../contracts/interfaces/IFastPay.sol";
import {Committees} from "../contracts/libraries/Committees.sol";
import {Votes} from "../contracts/libraries/Votes.sol";
import {Vm} from "forge-std/Vm.sol";
import {console} from "forge-std/console.sol";

/// @title The votes of authorities, one JSON file each
/// @notice `{"epoch": …, "authority": "0x…voting key", "signature": "0x…65 bytes"}`, where `epoch` is the one that the
/// statement names. Each vote is checked first. A bad one is left out and named, and exactly a quorum of good ones is
/// packed, in the order of the committee.
library VoteFiles {
    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// @notice The files that an environment variable names, separated by commas.
    function fromEnvironment(string memory name) internal view returns (string[] memory files) {
        files = vm.envString(name, ",");
        for (uint256 i = 0; i < files.length; ++i) {
            files[i] = vm.readFile(files[i]);
        }
    }

    /// @notice A quorum of the votes that count.
    /// @param members The committee that votes.
    /// @param digest What it votes for.
    /// @param epoch The epoch that the statement names.
    function pack(Authority[] memory members, bytes32 digest, uint256 epoch, string[] memory files)
        internal
        pure
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

    /// @notice Whether a signature of 65 bytes is the key's, in the one form that the contract accepts.
    function isSignedBy(address key, bytes32 digest, bytes memory signature) internal pure returns (bool) {
        if (signature.length != 65) return false;
        (bytes32 r, bytes32 s, uint8 v) = (bytes32(0), bytes32(0), uint8(signature[64]));
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
        }
        return uint256(s) <= Votes.S_MAX && ecrecover(digest, v, r, s) == key;
    }

    /// @dev The member's good vote; empty if there is none.
    function _signature(Authority memory member, bytes32 digest, uint256 epoch, string[] memory files)
        private
        pure
        returns (bytes memory)
    {
        for (uint256 i = 0; i < files.length; ++i) {
            if (vm.parseJsonBytes32(files[i], ".authority") != member.votingKey) continue;
            bytes memory signature = vm.parseJsonBytes(files[i], ".signature");
            string memory fault = "";
            if (vm.parseJsonUint(files[i], ".epoch") != epoch) {
                fault = "is for another epoch";
            } else if (!isSignedBy(member.redemptionKey, digest, signature)) {
                fault = "is not its signature of this statement";
            }
            if (bytes(fault).length == 0) return signature;
            console.log("the vote of authority", vm.toString(member.votingKey), fault);
        }
        return "";
    }
}
