// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../contracts/interfaces/ICouncil.sol";
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
/// @dev Two transactions: the council, then FastPay with the account's next nonce, at the address that the council was
/// deployed for. If only the first was mined, the script goes on with the second when it is run again within 12 hours, and
/// deploys another council later. For more than 230
/// members add `--gas-estimate-multiplier 110`: a transaction may have 2^24 gas (EIP-7825).
///
/// A script ends before its transactions are sent, so the block that `run` writes is the earliest in which the
/// contract can be: right on a chain that mines at once, and early enough to read events from on any. Running the
/// script again with `--sig "record()"` puts the exact one, as the contract knows it.
contract Deploy is Script {
    /// @dev Of a creation code with its arguments, in bytes (EIP-3860).
    uint256 private constant CREATION_MAX = 49_152;
    /// @dev FastPay refuses a council that is a day older. This leaves its transaction time to be mined.
    uint256 private constant COUNCIL_AGE_MAX = 12 hours;

    /// @notice Deploys, and writes the deployment.
    function run() external returns (IFastPay fastPay) {
        vm.startBroadcast();
        (, address deployer,) = vm.readCallers();
        vm.stopBroadcast();
        fastPay = deploy(vm.readFile(vm.envString("COMMITTEE")), deployer);
        _write(address(fastPay), block.number + 1);
    }

    /// @notice Deploys what the JSON of a chain's file says.
    /// @param deployer Whose transactions they are, and the guardian on a local chain, unless the file names one.
    function deploy(string memory json, address deployer) public returns (IFastPay) {
        ChainFile.requireThisChain(json);
        address guardian = ChainFile.guardian(json, deployer);
        ChainFile.requireSafeKeys(ChainFile.authorities(json), guardian, ChainFile.recovery(json));
        ICouncil council = _deployCouncil(json, deployer);
        return IFastPay(
            payable(_create(
                    deployer, ChainFile.fastPayCreation(json, guardian, council, ChainFile.caps(json))
                ))
        );
    }

    /// @notice Checks that the written deployment exists, and writes the block that it is in.
    function record() external {
        string memory json = vm.readFile(vm.envString("DEPLOYMENT"));
        IFastPay fastPay = IFastPay(payable(vm.parseJsonAddress(json, ".contract")));
        require(address(fastPay).code.length > 0, "no contract at the address in DEPLOYMENT");
        _write(address(fastPay), fastPay.deploymentBlock());
    }

    /// @dev The council for the contract that the deployer creates next: its last creation if that is one, else a new one.
    function _deployCouncil(string memory json, address deployer) private returns (ICouncil council) {
        uint64 nonce = vm.getNonce(deployer);
        if (nonce > 0) {
            council = ICouncil(vm.computeCreateAddress(deployer, nonce - 1));
            bytes memory creation = ChainFile.councilCreation(json, _contractAt(deployer, nonce));
            if (
                ChainFile.isCreation(address(council), creation, block.number, block.timestamp)
                    && council.recovery() == ChainFile.recovery(json)
                    && block.timestamp <= council.installedAt() + COUNCIL_AGE_MAX
            ) {
                console.log("using the council", address(council), "of the transaction before");
                return council;
            }
        }
        return ICouncil(_create(deployer, ChainFile.councilCreation(json, _contractAt(deployer, nonce + 1))));
    }

    function _contractAt(address deployer, uint256 nonce) private pure returns (IFastPay) {
        return IFastPay(payable(vm.computeCreateAddress(deployer, nonce)));
    }

    /// @dev The compiled contract rather than `new`: it alone goes through the slow optimizer.
    function _create(address deployer, bytes memory creation) private returns (address created) {
        require(creation.length <= CREATION_MAX, "too many authorities and caps for one creation (EIP-3860)");
        vm.startBroadcast(deployer);
        assembly ("memory-safe") {
            created := create(0, add(creation, 0x20), mload(creation))
            if iszero(created) {
                let reason := mload(0x40)
                returndatacopy(reason, 0, returndatasize())
                revert(reason, returndatasize())
            }
        }
        vm.stopBroadcast();
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
