// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";

/// @title A well-behaved token for demonstrations and tests
/// @notice An ERC-20 with ERC-2612 permits, whose whole supply goes to its deployer.
contract DemoToken is ERC20Permit {
    uint8 private immutable _decimals;

    constructor(string memory name, string memory symbol, uint8 decimals_, uint256 supply)
        ERC20(name, symbol)
        ERC20Permit(name)
    {
        _decimals = decimals_;
        _mint(msg.sender, supply);
    }

    /// @inheritdoc ERC20
    function decimals() public view override returns (uint8) {
        return _decimals;
    }
}
