// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {AssetCap, Authority, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Caps} from "../contracts/libraries/Caps.sol";
import {ChainFile} from "./ChainFile.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title Checks that what is deployed is this source, with the parameters of a chain's file
/// @notice
/// ```
/// COMMITTEE=committee.json CONTRACT=0x… forge script script/Verify.s.sol --rpc-url $RPC_URL
/// ```
/// Sends nothing. Ends with an error at the first difference.
/// @dev The source is deployed once more, in the script's own simulation and at the very address, so that immutables
/// and all that depends on the address come out alike. Then the runtime codes of both contracts have to be equal, byte for
/// byte: FastPay's and that of the council that it created.
contract Verify is Script {
    /// @notice Verifies the contract that the environment names.
    function run() external {
        string memory json = vm.readFile(vm.envString("COMMITTEE"));
        address deployed = vm.envAddress("CONTRACT");
        verify(json, deployed);
        IFastPay fastPay = IFastPay(payable(deployed));
        console.log("verified", deployed, "in epoch", fastPay.epoch());
        console.log("the input of the transaction that deployed it must have this keccak256:");
        console.logBytes32(creationHash(json, fastPay));
    }

    /// @notice The hash of this source's creation code with the parameters of `json`. A deployer whose creation code was
    /// another can have left the same runtime code and anything in storage.
    function creationHash(string memory json, IFastPay fastPay) public view returns (bytes32) {
        address guardian = ChainFile.guardian(json, fastPay.guardian());
        return keccak256(ChainFile.creationCode(json, guardian, ChainFile.caps(json)));
    }

    /// @notice Reverts, saying why, unless `deployed` is this source with the parameters of `json`.
    function verify(string memory json, address deployed) public {
        ChainFile.requireThisChain(json);
        IFastPay fastPay = IFastPay(payable(deployed));
        require(deployed.code.length > 0, "there is no contract at the address");
        // The guardian of the file is that of epoch 0, as its committee is; later ones are the committees' affair.
        address guardian = ChainFile.guardian(json, fastPay.guardian());
        Authority[] memory authorities = ChainFile.authorities(json);
        (bytes32 expected, bytes32 expectedCouncil) = _expectedCodes(json, guardian, fastPay);
        require(
            keccak256(deployed.code) == expected,
            "the runtime code is not this source's with these safety parameters"
        );
        require(
            keccak256(vm.computeCreateAddress(deployed, 1).code) == expectedCouncil,
            "the council's runtime code is not this source's"
        );
        require(
            keccak256(abi.encode(fastPay.committee(0))) == keccak256(abi.encode(authorities)),
            "the committee of epoch 0 is another"
        );
        for (uint64 epoch = 0; epoch <= fastPay.epoch(); ++epoch) {
            _verifyCommittee(fastPay, epoch);
        }
        if (fastPay.epoch() == 0) {
            require(fastPay.guardian() == guardian, "the guardian is another");
            require(
                fastPay.council().recovery() == ChainFile.recovery(json), "the recovery address is another"
            );
        }
        _verifyCaps(json, fastPay);
    }

    /// @dev The runtime codes of this source, deployed in the same block, on this chain and at the same address.
    function _expectedCodes(string memory json, address guardian, IFastPay fastPay)
        private
        returns (bytes32 runtime, bytes32 council)
    {
        uint256 state = vm.snapshotState();
        address deployed = address(fastPay);
        vm.roll(fastPay.deploymentBlock());
        // Deposit caps are in storage alone, where the contract has its own already.
        bytes memory creation = ChainFile.creationCode(json, guardian, new AssetCap[](0));
        // A contract's first creation has the nonce 1, and nothing may stand where it puts the council and the committee.
        vm.setNonceUnsafe(deployed, 1);
        for (uint256 nonce = 1; nonce <= 2; ++nonce) {
            vm.etch(vm.computeCreateAddress(deployed, nonce), "");
            vm.setNonceUnsafe(vm.computeCreateAddress(deployed, nonce), 0);
        }
        vm.etch(deployed, creation);
        (bool success, bytes memory code) = deployed.call("");
        require(success, "the file's parameters cannot be deployed");
        runtime = keccak256(code);
        council = keccak256(vm.computeCreateAddress(deployed, 1).code);
        require(vm.revertToState(state), "the simulation could not be undone");
    }

    /// @dev That the deposit caps of the file hold, or higher ones: the council can raise them.
    function _verifyCaps(string memory json, IFastPay fastPay) private view {
        AssetCap[] memory caps = ChainFile.caps(json);
        for (uint256 i = 0; i < caps.length; ++i) {
            uint256 cap = fastPay.depositCap(caps[i].asset);
            require(cap >= Caps.decode(Caps.encode(caps[i].cap)), "a deposit cap is lower than in the file");
        }
    }

    /// @dev That a committee stands where the contract looks for it, well-formed.
    function _verifyCommittee(IFastPay fastPay, uint64 epoch) private view {
        bytes memory code = vm.computeCreateAddress(address(fastPay), uint256(epoch) + 2).code;
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
