// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {ChainFile} from "./ChainFile.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title Checks that what is deployed is this source, with the parameters of a chain's file
/// @notice
/// ```
/// COMMITTEE=committee.json CONTRACT=0x… forge script script/Verify.s.sol --rpc-url $RPC_URL
/// ```
/// Sends nothing. Ends with an error at the first difference.
/// @dev The source is deployed once more, in the script's own simulation and at the very address, so that immutables
/// and all that depends on the address come out alike; then the runtime codes have to be equal, byte for byte.
contract Verify is Script {
    /// @notice Verifies the contract that the environment names.
    function run() external {
        string memory json = vm.readFile(vm.envString("COMMITTEE"));
        address deployed = vm.envAddress("CONTRACT");
        verify(json, deployed);
        console.log("verified", deployed, "in epoch", IFastPay(payable(deployed)).epoch());
    }

    /// @notice Reverts, saying why, unless `deployed` is this source with the parameters of `json`.
    function verify(string memory json, address deployed) public {
        ChainFile.requireThisChain(json);
        IFastPay fastPay = IFastPay(payable(deployed));
        require(deployed.code.length > 0, "there is no contract at the address");
        // The guardian of the file is that of epoch 0, as its committee is; later ones are the committees' affair.
        address guardian = ChainFile.guardian(json, fastPay.guardian());
        Authority[] memory authorities = ChainFile.authorities(json);
        require(
            keccak256(deployed.code) == keccak256(_expectedCode(json, guardian, fastPay)),
            "the runtime code is not this source's with these brakes"
        );
        require(
            keccak256(abi.encode(fastPay.committee(0))) == keccak256(abi.encode(authorities)),
            "the committee of epoch 0 is another"
        );
        for (uint64 epoch = 0; epoch <= fastPay.epoch(); ++epoch) {
            _verifyCommittee(fastPay, epoch);
        }
        require(fastPay.epoch() > 0 || fastPay.guardian() == guardian, "the guardian is another");
    }

    /// @dev The runtime code of this source, deployed in the same block, on this chain and at the same address.
    function _expectedCode(string memory json, address guardian, IFastPay fastPay)
        private
        returns (bytes memory)
    {
        uint256 state = vm.snapshotState();
        address deployed = address(fastPay);
        vm.roll(fastPay.deploymentBlock());
        bytes memory creation = ChainFile.creationCode(json, guardian);
        // A contract's first creation has the nonce 1, and nothing may stand where it puts the committee.
        vm.etch(vm.computeCreateAddress(deployed, 1), "");
        vm.setNonceUnsafe(vm.computeCreateAddress(deployed, 1), 0);
        vm.setNonceUnsafe(deployed, 1);
        vm.etch(deployed, creation);
        (bool success, bytes memory runtime) = deployed.call("");
        require(success, "the file's parameters cannot be deployed");
        require(vm.revertToState(state), "the simulation could not be undone");
        return runtime;
    }

    /// @dev That a committee stands where the contract looks for it, well-formed.
    function _verifyCommittee(IFastPay fastPay, uint64 epoch) private view {
        bytes memory code = vm.computeCreateAddress(address(fastPay), uint256(epoch) + 1).code;
        Authority[] memory members = fastPay.committee(epoch);
        bytes memory keys = hex"00";
        bytes memory names = "";
        for (uint256 i = 0; i < members.length; ++i) {
            keys = abi.encodePacked(keys, uint256(uint160(members[i].redemptionKey)));
            names = abi.encodePacked(names, members[i].votingKey);
        }
        require(members.length >= 4, "a committee is too small");
        require(keccak256(code) == keccak256(bytes.concat(keys, names)), "a committee's code is not its keys");
    }
}
