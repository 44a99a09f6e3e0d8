// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {FastPay} from "../contracts/FastPay.sol";
import {Authority} from "../contracts/interfaces/IFastPay.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title Deploys FastPay for a committee
/// @notice
/// ```
/// COMMITTEE=committee.json DEPLOYMENT=deployment.json \
///     forge script script/Deploy.s.sol --rpc-url $RPC_URL --private-key $KEY --broadcast
/// ```
/// `COMMITTEE` is read: `{"authorities": [{"votingKey": "0x…", "redemptionKey": "0x…"}]}`, in any order.
/// `DEPLOYMENT` is written: `{"chainId": …, "contract": "0x…", "deploymentBlock": …}`.
/// @dev A script ends before its transactions are sent, so the block that `run` writes is the earliest in which the
/// contract can be: right on a chain that mines at once, and early enough to read events from on any. Running the
/// script again with `--sig "record()"` puts the exact one, as the contract knows it.
contract Deploy is Script {
    /// @notice Deploys, and writes the deployment.
    function run() external returns (FastPay fastPay) {
        Authority[] memory authorities = readCommittee(vm.envString("COMMITTEE"));
        vm.startBroadcast();
        fastPay = new FastPay(authorities);
        vm.stopBroadcast();
        _write(address(fastPay), block.number + 1);
    }

    /// @notice Checks that the written deployment exists, and writes the block that it is in.
    function record() external {
        string memory json = vm.readFile(vm.envString("DEPLOYMENT"));
        FastPay fastPay = FastPay(payable(vm.parseJsonAddress(json, ".contract")));
        require(address(fastPay).code.length > 0, "no contract at the address in DEPLOYMENT");
        _write(address(fastPay), fastPay.deploymentBlock());
    }

    /// @notice The authorities of a committee file, sorted by voting key.
    function readCommittee(string memory path) public view returns (Authority[] memory authorities) {
        string memory json = vm.readFile(path);
        uint256 size = 0;
        while (vm.keyExistsJson(json, _authority(size))) ++size;

        authorities = new Authority[](size);
        for (uint256 i = 0; i < size; ++i) {
            Authority memory next = Authority({
                votingKey: vm.parseJsonBytes32(json, string.concat(_authority(i), ".votingKey")),
                redemptionKey: vm.parseJsonAddress(json, string.concat(_authority(i), ".redemptionKey"))
            });
            uint256 place = i;
            for (; place > 0 && authorities[place - 1].votingKey > next.votingKey; --place) {
                authorities[place] = authorities[place - 1];
            }
            authorities[place] = next;
        }
    }

    function _authority(uint256 index) private pure returns (string memory) {
        return string.concat(".authorities[", vm.toString(index), "]");
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
