// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {DemoToken} from "../test/tokens/DemoToken.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title Deploys a token to try FastPay with
/// @notice The whole supply goes to the deployer. From the environment, all optional but the last: `TOKEN_NAME`,
/// `TOKEN_SYMBOL`, `TOKEN_DECIMALS`, `TOKEN_SUPPLY` (in the smallest unit), and `DEPLOYMENT`, the file that is
/// written: `{"chainId": …, "token": "0x…", "symbol": "…", "decimals": …}`.
contract DeployDemoToken is Script {
    /// @notice Deploys, and writes the deployment.
    function run() external returns (DemoToken token) {
        string memory symbol = vm.envOr("TOKEN_SYMBOL", string("DEMO"));
        uint256 decimals = vm.envOr("TOKEN_DECIMALS", uint256(6));
        require(decimals <= type(uint8).max, "TOKEN_DECIMALS is above 255");
        vm.startBroadcast();
        token = new DemoToken(
            vm.envOr("TOKEN_NAME", string("FastPay demo token")),
            symbol,
            // forge-lint: disable-next-line(unsafe-typecast) -- checked above
            uint8(decimals),
            vm.envOr("TOKEN_SUPPLY", uint256(1e9) * 10 ** decimals)
        );
        vm.stopBroadcast();

        string memory deployment = "deployment";
        vm.serializeUint(deployment, "chainId", block.chainid);
        vm.serializeAddress(deployment, "token", address(token));
        vm.serializeString(deployment, "symbol", symbol);
        string memory json = vm.serializeUint(deployment, "decimals", decimals);
        vm.writeJson(json, vm.envString("DEPLOYMENT"));
        console.log(symbol, address(token), "written to", vm.envString("DEPLOYMENT"));
    }
}
