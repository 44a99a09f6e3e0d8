// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../contracts/interfaces/ICouncil.sol";
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
/// @dev Both contracts are deployed once more, in the script's own simulation and at their very addresses, so that immutables
/// and all that depends on the address come out alike. Then the runtime codes have to be equal, byte for byte.
contract Verify is Script {
    /// @notice Verifies the contract that the environment names.
    function run() external {
        string memory json = vm.readFile(vm.envString("COMMITTEE"));
        address deployed = vm.envAddress("CONTRACT");
        verify(json, deployed);
        IFastPay fastPay = IFastPay(payable(deployed));
        console.log("verified", deployed, "in epoch", fastPay.epoch());
        (bytes32 contractHash, bytes32 councilHash) = creationHashes(json, fastPay);
        console.log("the input of the transaction that deployed it must have this keccak256:");
        console.logBytes32(contractHash);
        console.log("that of the one that deployed its council", address(fastPay.council()));
        console.logBytes32(councilHash);
    }

    /// @notice The hashes of this source's creation codes with the parameters of `json`: FastPay's and the council's. A
    /// deployer whose creation code was another can have left the same runtime code and anything in storage.
    function creationHashes(string memory json, IFastPay fastPay)
        public
        view
        returns (bytes32 contractHash, bytes32 councilHash)
    {
        address guardian = ChainFile.guardian(json, fastPay.guardian());
        bytes memory creation =
            ChainFile.fastPayCreation(json, guardian, fastPay.council(), ChainFile.caps(json));
        return (keccak256(creation), keccak256(ChainFile.councilCreation(json, fastPay)));
    }

    /// @notice Reverts, saying why, unless `deployed` is this source with the parameters of `json`.
    function verify(string memory json, address deployed) public {
        ChainFile.requireThisChain(json);
        IFastPay fastPay = IFastPay(payable(deployed));
        require(deployed.code.length > 0, "there is no contract at the address");
        // The guardian of the file is that of epoch 0, as its committee is; later ones are the committees' affair.
        address guardian = ChainFile.guardian(json, fastPay.guardian());
        Authority[] memory authorities = ChainFile.authorities(json);
        ICouncil council = fastPay.council();
        require(
            ChainFile.isCreation(address(council), ChainFile.councilCreation(json, fastPay), block.number, 0),
            "the council's runtime code is not this source's"
        );
        // Deposit caps are in storage alone, where the contract has its own already. At the time of the last installation the
        // council is young enough.
        bytes memory creation = ChainFile.fastPayCreation(json, guardian, council, new AssetCap[](0));
        require(
            ChainFile.isCreation(deployed, creation, fastPay.deploymentBlock(), council.installedAt()),
            "the runtime code is not this source's with these safety parameters"
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
            require(council.recovery() == ChainFile.recovery(json), "the recovery address is another");
        }
        _verifyCaps(json, fastPay);
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
