// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {ChainFile} from "./ChainFile.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title Deploys FastPay as a chain's file says
/// @notice
/// ```
/// COMMITTEE=committee.json DEPLOYMENT=deployment.json \
///     forge script script/Deploy.s.sol --rpc-url $RPC_URL --private-key $KEY --broadcast
/// ```
/// `COMMITTEE` is read (see `ChainFile`), `DEPLOYMENT` is written:
/// `{"chainId": …, "contract": "0x…", "deploymentBlock": …}`.
/// @dev A script ends before its transactions are sent, so the block that `run` writes is the earliest in which the
/// contract can be: right on a chain that mines at once, and early enough to read events from on any. Running the
/// script again with `--sig "record()"` puts the exact one, as the contract knows it.
contract Deploy is Script {
    /// @dev Of the creation code with its arguments, in bytes (EIP-3860).
    uint256 private constant CREATION_MAX = 49_152;

    /// @notice Deploys, and writes the deployment.
    function run() external returns (IFastPay fastPay) {
        vm.startBroadcast();
        (, address deployer,) = vm.readCallers();
        fastPay = deploy(vm.readFile(vm.envString("COMMITTEE")), deployer);
        vm.stopBroadcast();
        _write(address(fastPay), block.number + 1);
    }

    /// @notice Deploys what the JSON of a chain's file says.
    /// @param deployer The guardian on a local chain, unless the file names one.
    function deploy(string memory json, address deployer) public returns (IFastPay) {
        ChainFile.requireThisChain(json);
        address guardian = ChainFile.guardian(json, deployer);
        ChainFile.requireSafeKeys(ChainFile.authorities(json), guardian, ChainFile.recovery(json));
        bytes memory creation = ChainFile.creationCode(json, guardian, ChainFile.caps(json));
        require(
            creation.length <= CREATION_MAX,
            "too many authorities and caps for one creation (EIP-3860): begin with fewer"
        );
        address deployed;
        // The compiled contract rather than `new`: it alone goes through the slow optimizer.
        assembly ("memory-safe") {
            deployed := create(0, add(creation, 0x20), mload(creation))
            if iszero(deployed) {
                let reason := mload(0x40)
                returndatacopy(reason, 0, returndatasize())
                revert(reason, returndatasize())
            }
        }
        return IFastPay(payable(deployed));
    }

    /// @notice Checks that the written deployment exists, and writes the block that it is in.
    function record() external {
        string memory json = vm.readFile(vm.envString("DEPLOYMENT"));
        IFastPay fastPay = IFastPay(payable(vm.parseJsonAddress(json, ".contract")));
        require(address(fastPay).code.length > 0, "no contract at the address in DEPLOYMENT");
        _write(address(fastPay), fastPay.deploymentBlock());
    }

    function _write(address fastPay, uint256 deploymentBlock) private {
        string memory deployment = "deployment";
        vm.serializeUint(deployment, "chainId", block.chainid);
        vm.serializeAddress(deployment, "contract", fastPay);
        string memory json = vm.serializeUint(deployment, "deploymentBlock", deploymentBlock);
        vm.writeJson(json, vm.envString("DEPLOYMENT"));
        console.log("FastPay", fastPay, "written to", vm.envString("DEPLOYMENT"));
    }
}
