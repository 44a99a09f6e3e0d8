// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

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

    function _sign(uint256 member, bytes32 digest) private pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(memberKey(member), digest);
        return abi.encodePacked(r, s, v);
    }
}
