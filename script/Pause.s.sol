// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title The guardian's two calls
/// @notice
/// ```
/// CONTRACT=0x… forge script script/Pause.s.sol --rpc-url $RPC_URL --private-key $GUARDIAN_KEY --broadcast
/// CONTRACT=0x… forge script script/Pause.s.sol --sig "end()" --rpc-url $RPC_URL --private-key … --broadcast
/// ```
/// Each says before it sends anything why the contract would refuse.
contract Pause is Script {
    /// @notice Pauses.
    function run() external {
        IFastPay fastPay = IFastPay(payable(vm.envAddress("CONTRACT")));
        vm.startBroadcast();
        pause(fastPay);
        vm.stopBroadcast();
        console.log("paused until", fastPay.pausedUntil(), "and not again before", fastPay.nextPauseAt());
    }

    /// @notice Ends a pause.
    function end() external {
        IFastPay fastPay = IFastPay(payable(vm.envAddress("CONTRACT")));
        vm.startBroadcast();
        unpause(fastPay);
        vm.stopBroadcast();
        console.log("runs; not to be paused again before", fastPay.nextPauseAt());
    }

    /// @notice Pauses a contract, as the account that broadcasts.
    function pause(IFastPay fastPay) public {
        _requireGuardian(fastPay);
        uint256 nextAt = fastPay.nextPauseAt();
        require(block.timestamp >= nextAt, string.concat("the next pause may begin at ", vm.toString(nextAt)));
        fastPay.pause();
    }

    /// @notice Ends the pause of a contract, as the account that broadcasts.
    function unpause(IFastPay fastPay) public {
        _requireGuardian(fastPay);
        require(block.timestamp < fastPay.pausedUntil(), "the contract is not paused");
        fastPay.unpause();
    }

    function _requireGuardian(IFastPay fastPay) private {
        (, address caller,) = vm.readCallers();
        address guardian = fastPay.guardian();
        require(caller == guardian, string.concat("the guardian is ", vm.toString(guardian)));
    }
}
