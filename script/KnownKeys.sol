// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

/// @title Keys whose secrets are public, because tests and tutorials use them
/// @notice Those of anvil, which the demo and local networks use too, and all that this repository's tests make up.
library KnownKeys {
    /// @dev The accounts of anvil and hardhat.
    string private constant MNEMONIC = "test test test test test test test test test test test junk";
    uint32 private constant MNEMONIC_KEYS = 20;

    /// @dev The secrets 1, 2, 3, …
    uint256 private constant SMALL_KEYS = 1000;

    /// @dev One byte, 32 times: 0xff so often is no secret.
    uint256 private constant REPEATED_KEYS = 254;

    /// @dev `secret` of `testkit`: a byte for the purpose, 24 times, and a number: of Ethereum accounts (2) and of members'
    /// redemption keys (4), which begin at a multiple of 1,000 in each epoch.
    uint256 private constant TESTKIT_EPOCHS = 3;
    uint256 private constant TESTKIT_KEYS = 256;

    /// @dev `memberKey` of the contract's tests.
    uint256 private constant MEMBER_KEYS = 1000;

    /// @dev What the SDK's tests seed keys with: epochs and members.
    uint256 private constant SDK_EPOCHS = 3;
    uint256 private constant SDK_KEYS = 10;

    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    /// @notice The addresses of known secp256k1 keys.
    function addresses() internal pure returns (address[] memory list) {
        string[9] memory names = [
            "alice",
            "bob",
            "relayer",
            "guardian",
            "recovery",
            "thief",
            "attacker",
            "an asset",
            "another asset"
        ];
        list = new address[](
            MNEMONIC_KEYS + SMALL_KEYS + REPEATED_KEYS + 2 * TESTKIT_EPOCHS * TESTKIT_KEYS + MEMBER_KEYS
                + SDK_EPOCHS * SDK_KEYS + names.length + 1
        );
        uint256 next = 0;
        for (uint32 i = 0; i < MNEMONIC_KEYS; ++i) {
            list[next++] = vm.addr(vm.deriveKey(MNEMONIC, i));
        }
        for (uint256 i = 1; i <= SMALL_KEYS; ++i) {
            list[next++] = vm.addr(i);
        }
        for (uint256 i = 1; i <= REPEATED_KEYS; ++i) {
            list[next++] = vm.addr(_repeated(i));
        }
        for (uint256 i = 0; i < TESTKIT_EPOCHS * TESTKIT_KEYS; ++i) {
            uint256 number = i / TESTKIT_KEYS * 1000 + i % TESTKIT_KEYS;
            list[next++] = vm.addr(_testkit(2, number));
            list[next++] = vm.addr(_testkit(4, number));
        }
        for (uint256 i = 0; i < MEMBER_KEYS; ++i) {
            list[next++] = vm.addr(uint256(keccak256(abi.encode("redemption key", i))));
        }
        for (uint256 i = 0; i < SDK_EPOCHS * SDK_KEYS; ++i) {
            list[next++] = vm.addr(
                _named(
                    string.concat(
                        "redemption epoch ", vm.toString(i / SDK_KEYS), " ", vm.toString(i % SDK_KEYS)
                    )
                )
            );
        }
        for (uint256 i = 0; i < names.length; ++i) {
            list[next++] = vm.addr(_named(names[i]));
        }
        list[next] = vm.addr(0xa11ce);
    }

    /// @notice Known Ed25519 keys: of RFC 8032, of seeds that are one byte 32 times, and of tests. The file is as
    /// `testkit/tests/testkit/known_keys.rs` computes it.
    function votingKeys() internal view returns (bytes32[] memory) {
        return vm.parseJsonBytes32Array(vm.readFile("script/known-voting-keys.json"), ".");
    }

    /// @notice Whether an address is in the list.
    function has(address[] memory list, address one) internal pure returns (bool) {
        for (uint256 i = 0; i < list.length; ++i) {
            if (list[i] == one) return true;
        }
        return false;
    }

    /// @notice Whether a key is in the list.
    function has(bytes32[] memory list, bytes32 one) internal pure returns (bool) {
        for (uint256 i = 0; i < list.length; ++i) {
            if (list[i] == one) return true;
        }
        return false;
    }

    function _repeated(uint256 one) private pure returns (uint256) {
        return one * (type(uint256).max / type(uint8).max);
    }

    function _testkit(uint256 purpose, uint256 number) private pure returns (uint256) {
        return (_repeated(purpose) >> 64 << 64) | number;
    }

    /// @dev As Foundry's `makeAddr`.
    function _named(string memory name) private pure returns (uint256) {
        return uint256(keccak256(bytes(name)));
    }
}
