// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../interfaces/ICouncil.sol";

/// @title Hashes of recent blocks
library Blocks {
    /// @dev Keeps the hashes of the last 8,191 blocks (EIP-2935).
    address private constant HISTORY = 0x0000F90827F1C53a10cb7A02335B175320002935;

    /// @notice The hash of a block: one of the last 256, or an older one that the chain's history contract keeps.
    /// Reverts with `UnknownBlock` for any other block.
    function hashOf(uint256 number) internal view returns (bytes32 hash) {
        hash = blockhash(number);
        if (hash == 0) {
            // A chain without that contract answers nothing.
            // slither-disable-next-line low-level-calls -- it has no function names
            (bool success, bytes memory answer) = HISTORY.staticcall(abi.encode(number));
            // forge-lint: disable-next-line(unsafe-typecast) -- of one word
            if (success && answer.length == 32) hash = bytes32(answer);
        }
        require(hash != 0, ICouncil.UnknownBlock(number));
    }
}
