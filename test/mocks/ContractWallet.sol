// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title A wallet that is a contract, and has no key
contract ContractWallet {
    constructor() payable {}

    /// @dev Passes on what the call reverts with.
    function execute(address target, uint256 value, bytes calldata data) external {
        (bool success, bytes memory answer) = target.call{value: value}(data);
        if (success) return;
        assembly ("memory-safe") {
            revert(add(answer, 0x20), mload(answer))
        }
    }

    receive() external payable {}
}

/// @title Sends all its ETH while it is being made, when it has no code yet
contract SenderUnderConstruction {
    bool public sent;
    bytes public answer;

    constructor(address target) payable {
        (sent, answer) = target.call{value: msg.value}("");
    }
}
