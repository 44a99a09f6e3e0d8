// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {AssetCap, Authority, IFastPay, SafetyParameters} from "../../contracts/interfaces/IFastPay.sol";
import {CommonBase} from "forge-std/Base.sol";
import {Script} from "forge-std/Script.sol";
import {StdCheats} from "forge-std/StdCheats.sol";

/// @dev As in ledger/state/tests/state/differential/contract.rs: a call at this time, in a block of its own.
struct Step {
    uint256 time;
    bool isForCouncil;
    address caller;
    uint256 value;
    bytes data;
}

struct Course {
    uint256 chainId;
    address deployment;
    uint32 votesValidity;
    uint32 unlockWindow;
    uint256 begin;
    Authority[] first;
    address guardian;
    address[] people;
    uint256[] balances;
    Step[] steps;
}

/// @dev Of newer versions of Foundry than forge-std's.
interface BlockHashes {
    function setBlockhash(uint256 blockNumber, bytes32 blockHash) external;
}

/// @title What the contract does in a course of steps that the ledger takes too
/// @notice Reads `target/differential/courses.txt`, one ABI-encoded `Course` a line, and writes a line for each step to
/// `outcomes.txt` beside it: whether it went through, the newest index, what is held, what each of the people has, and
/// what it reverted with.
contract LedgerCourseScript is Script {
    string private constant FOLDER = "target/differential/";

    function run() external {
        string memory courses = string.concat(FOLDER, "courses.txt");
        Player player = new Player();
        for (string memory line = vm.readLine(courses); bytes(line).length > 0; line = vm.readLine(courses)) {
            uint256 state = vm.snapshotState();
            string[] memory outcomes = player.play(abi.decode(vm.parseBytes(line), (Course)));
            require(vm.revertToState(state));
            for (uint256 i = 0; i < outcomes.length; ++i) {
                vm.writeLine(string.concat(FOLDER, "outcomes.txt"), outcomes[i]);
            }
        }
    }
}

/// @title Deploys the contract as a course wants it, and takes its steps
contract Player is CommonBase, StdCheats {
    /// @dev Step i is in the block after FIRST_BLOCK + i. A block's hash is its number.
    uint256 private constant FIRST_BLOCK = 1000;

    function play(Course calldata course) external returns (string[] memory outcomes) {
        vm.roll(FIRST_BLOCK);
        vm.warp(course.begin);
        IFastPay fastPay = _deploy(course);
        for (uint256 i = 0; i < course.people.length; ++i) {
            vm.deal(course.people[i], course.balances[i]);
        }
        outcomes = new string[](course.steps.length);
        for (uint256 i = 0; i < course.steps.length; ++i) {
            vm.warp(course.steps[i].time);
            vm.roll(FIRST_BLOCK + i + 1);
            BlockHashes(address(vm)).setBlockhash(FIRST_BLOCK + i, bytes32(FIRST_BLOCK + i));
            (bool accepted, bytes memory reason) = _take(fastPay, course.steps[i]);
            string memory outcome = string.concat(
                vm.toString(accepted),
                " ",
                vm.toString(fastPay.lastTransactionIndex()),
                " ",
                vm.toString(fastPay.totalBalance(address(0)))
            );
            for (uint256 j = 0; j < course.people.length; ++j) {
                outcome = string.concat(outcome, " ", vm.toString(course.people[j].balance));
            }
            outcomes[i] = string.concat(outcome, " ", vm.toString(reason));
        }
    }

    function _take(IFastPay fastPay, Step calldata step) private returns (bool, bytes memory) {
        address target = step.isForCouncil ? address(fastPay.council()) : address(fastPay);
        vm.prank(step.caller);
        return target.call{value: step.value}(step.data);
    }

    function _deploy(Course calldata course) private returns (IFastPay) {
        vm.chainId(course.chainId);
        // All that is held may leave in a day, so a redemption passes where the steps are a day apart.
        SafetyParameters memory parameters = SafetyParameters(
            1 days, 7 days, 1 days, 10_000, 21 days, course.votesValidity, course.unlockWindow
        );
        // As a chain has it: a contract's first creation has the nonce 1 (EIP-161), which the cheat leaves at 0.
        vm.setNonce(course.deployment, 1);
        address council = deployCode("Council.sol:Council", abi.encode(course.deployment, address(0)));
        bytes memory arguments =
            abi.encode(course.first, course.guardian, council, parameters, new AssetCap[](0));
        deployCodeTo("FastPay.sol:FastPay", arguments, course.deployment);
        return IFastPay(payable(course.deployment));
    }
}
