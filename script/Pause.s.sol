// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Script, console} from "forge-std/Script.sol";

/// @title The guardian's two calls
/// @notice
/// ```
/// CONTRACT=0x… forge script script/Pause.s.sol --rpc-url $RPC_URL --private-key $KEY --broadcast
/// CONTRACT=0x… forge script script/Pause.s.sol --sig "end()" --rpc-url $RPC_URL --private-key $KEY --broadcast
/// ```
/// Each says before it sends anything why the contract would refuse.
contract Pause is Script {
    /// @notice Pauses.
    function run() external {
        IFastPay fastPay = IFastPay(payable(vm.envAddress("CONTRACT")));
        vm.startBroadcast();
        _requireGuardian(fastPay);
        uint256 nextAt = fastPay.nextPauseAt();
        require(block.timestamp >= nextAt, string.concat("the next pause may begin at ", vm.toString(nextAt)));
        fastPay.pause();
        vm.stopBroadcast();
        console.log("paused until", fastPay.pausedUntil(), "and not again before", fastPay.nextPauseAt());
    }

    /// @notice Ends a pause.
    function end() external {
        IFastPay fastPay = IFastPay(payable(vm.envAddress("CONTRACT")));
        vm.startBroadcast();
        _requireGuardian(fastPay);
        require(block.timestamp < fastPay.pausedUntil(), "the contract is not paused");
        fastPay.unpause();
        vm.stopBroadcast();
        console.log("not paused any more, and not again before", fastPay.nextPauseAt());
    }

    function _requireGuardian(IFastPay fastPay) private {
        (, address caller,) = vm.readCallers();
        address guardian = fastPay.guardian();
        require(caller == guardian, string.concat("the guardian is ", vm.toString(guardian)));
    }
}
