// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement} from "../contracts/interfaces/ICouncil.sol";
import {Authority, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title The files that operators exchange, as `fastpay-node committee` writes them
abstract contract OperatorFiles is FastPayTest {
    string internal constant FOLDER = "target/forge/";

    /// @dev A list of authorities, backwards.
    function listOf(Authority[] memory members) internal pure returns (string memory list) {
        for (uint256 i = members.length; i > 0; --i) {
            list = string.concat(
                list,
                i == members.length ? "[" : ",",
                '{"votingKey":"',
                vm.toString(members[i - 1].votingKey),
                '","redemptionKey":"',
                vm.toString(members[i - 1].redemptionKey),
                '"}'
            );
        }
        return string.concat(list, "]");
    }

    function announcementFile(Announcement memory announcement) internal view returns (string memory) {
        string memory roles = string.concat(
            ',"guardian":"',
            vm.toString(announcement.guardian),
            '","recovery":"',
            vm.toString(announcement.recovery),
            '","checkpoint":"',
            vm.toString(announcement.checkpoint)
        );
        string memory numbers = string.concat(
            '","epoch":',
            vm.toString(announcement.epoch),
            ',"compromisedSince":',
            vm.toString(announcement.compromisedSince),
            ',"deadline":',
            vm.toString(announcement.deadline)
        );
        return string.concat(
            '{"chainId":',
            vm.toString(block.chainid),
            ',"authorities":',
            listOf(announcement.authorities),
            roles,
            numbers,
            "}"
        );
    }

    function redemptionFile(Redemption memory order) internal pure returns (string memory) {
        string memory parties = string.concat(
            '{"sender":"',
            vm.toString(order.sender),
            '","recipient":"',
            vm.toString(order.recipient),
            '","asset":"',
            vm.toString(order.asset),
            '","memo":"',
            vm.toString(order.memo)
        );
        return string.concat(
            parties,
            '","amount":',
            vm.toString(order.amount),
            ',"fee":',
            vm.toString(order.fee),
            ',"sequence":',
            vm.toString(order.sequence),
            "}"
        );
    }

    function voteFile(uint256 member, uint256 epoch, bytes32 digest) internal pure returns (string memory) {
        return string.concat(
            '{"epoch":',
            vm.toString(epoch),
            ',"authority":"',
            vm.toString(authoritiesFrom(member, 1)[0].votingKey),
            '","signature":"',
            vm.toString(_sign(member, digest)),
            '"}'
        );
    }

    /// @dev The Ed25519 half is noise, which neither script nor contract can check.
    function proofFile(uint256 member) internal view returns (string memory) {
        Authority memory authority = authoritiesFrom(member, 1)[0];
        bytes32 digest = fastPay.council().possessionDigest(authority);
        return string.concat(
            '{"votingKey":"',
            vm.toString(authority.votingKey),
            '","redemptionKey":"',
            vm.toString(authority.redemptionKey),
            '","redemptionSignature":"',
            vm.toString(_sign(member, digest)),
            '","votingSignature":"',
            vm.toString(bytes.concat(digest, digest)),
            '"}'
        );
    }

    /// @dev Writes a file, and names it in the environment.
    function put(string memory variable, string memory name, string memory content) internal {
        string memory path = string.concat(FOLDER, name);
        vm.writeFile(path, content);
        vm.setEnv(variable, path);
    }

    /// @dev Writes the votes of the members from `first` on, backwards, and names them in the environment.
    function putVotes(uint256 first, uint256 count, uint256 epoch, bytes32 digest) internal {
        string memory paths = "";
        for (uint256 i = count; i > 0; --i) {
            string memory path = string.concat(FOLDER, "vote", vm.toString(i), ".json");
            vm.writeFile(path, voteFile(first + i - 1, epoch, digest));
            paths = string.concat(paths, i == count ? "" : ",", path);
        }
        vm.setEnv("VOTES", paths);
    }

    /// @dev Writes the proofs of the members from `first` on, backwards, and names them in the environment.
    function putProofs(uint256 first, uint256 count) internal {
        string memory paths = "";
        for (uint256 i = count; i > 0; --i) {
            string memory path = string.concat(FOLDER, "proof", vm.toString(i), ".json");
            vm.writeFile(path, proofFile(first + i - 1));
            paths = string.concat(paths, i == count ? "" : ",", path);
        }
        vm.setEnv("PROOFS", paths);
    }

    function _sign(uint256 member, bytes32 digest) private pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(memberKey(member), digest);
        return abi.encodePacked(r, s, v);
    }
}
