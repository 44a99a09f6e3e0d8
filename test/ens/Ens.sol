// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title A registry of ENS with a resolver
/// @notice The reads of both by which a wallet resolves a name (EIP-137), for tests of the web wallet. Anyone may set names.
contract Ens {
    mapping(bytes32 node => address) private _addresses;

    /// @notice Sets the address of a name.
    function setAddr(bytes32 node, address to) external {
        _addresses[node] = to;
    }

    /// @notice The name's resolver, which is this contract; zero if the name has no address.
    function resolver(bytes32 node) external view returns (address) {
        return _addresses[node] == address(0) ? address(0) : address(this);
    }

    /// @notice The name's address.
    function addr(bytes32 node) external view returns (address) {
        return _addresses[node];
    }
}
