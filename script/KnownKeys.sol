// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

/// @title Keys whose secrets are public, because tests and tutorials use them
library KnownKeys {
    /// @dev The accounts of anvil and hardhat.
    string private constant MNEMONIC = "test test test test test test test test test test test junk";
    uint32 private constant MNEMONIC_KEYS = 20;

    /// @dev The secrets 1, 2, 3, …
    uint256 private constant SMALL_KEYS = 1000;

    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// @notice The addresses of known secp256k1 keys.
    function addresses() internal pure returns (address[] memory list) {
        list = new address[](MNEMONIC_KEYS + SMALL_KEYS);
        for (uint32 i = 0; i < MNEMONIC_KEYS; ++i) {
            list[i] = vm.addr(vm.deriveKey(MNEMONIC, i));
        }
        for (uint256 i = 0; i < SMALL_KEYS; ++i) {
            list[MNEMONIC_KEYS + i] = vm.addr(i + 1);
        }
    }

    /// @notice Whether an address is in the list.
    function has(address[] memory list, address one) internal pure returns (bool) {
        for (uint256 i = 0; i < list.length; ++i) {
            if (list[i] == one) return true;
        }
        return false;
    }

    /// @notice Whether an Ed25519 key is one of RFC 8032, or its seed is 32 times the byte 0 to 4.
    function isVotingKey(bytes32 key) internal pure returns (bool) {
        bytes32[10] memory known = [
            bytes32(0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a),
            0x3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c,
            0xfc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025,
            0x278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e,
            0xec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf,
            0x3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29,
            0x8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c,
            0x8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394,
            0xed4928c628d1c2c6eae90338905995612959273a5c63f93636c14614ac8737d1,
            0xca93ac1705187071d67b83c7ff0efe8108e8ec4530575d7726879333dbdabe7c
        ];
        for (uint256 i = 0; i < known.length; ++i) {
            if (known[i] == key) return true;
        }
        return false;
    }
}
