// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {
    AssetCap,
    Authority,
    IFastPay,
    Redemption,
    SafetyParameters
} from "../../contracts/interfaces/IFastPay.sol";
import {CommonBase} from "forge-std/Base.sol";
import {Script} from "forge-std/Script.sol";
import {StdCheats} from "forge-std/StdCheats.sol";

/// @dev As in ledger/state/tests/state/differential.rs. Kind 0 funds, 1 redeems, 2 installs the next committee.
struct Step {
    uint256 advance;
    uint8 kind;
    bytes32 account;
    uint128 amount;
    Redemption redemption;
    uint64 epoch;
    bytes votes;
    Authority[] next;
    uint64 compromisedSince;
}

struct Course {
    uint256 chainId;
    address deployment;
    uint32 votesValidity;
    Authority[] first;
    address relayer;
    address[] recipients;
    Step[] steps;
}

/// @title What the contract does in a course of steps that the ledger takes too
/// @notice Reads `target/differential/courses.txt`, one ABI-encoded `Course` a line, and writes a line for each step to
/// `outcomes.txt` beside it: whether it went through, the newest index, what is held, what recipients and the relayer
/// have, and what it reverted with.
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
    function play(Course calldata course) external returns (string[] memory outcomes) {
        IFastPay fastPay = _deploy(course);
        outcomes = new string[](course.steps.length);
        for (uint256 i = 0; i < course.steps.length; ++i) {
            vm.warp(vm.getBlockTimestamp() + course.steps[i].advance);
            (bool accepted, bytes memory reason) = _take(fastPay, course, course.steps[i]);
            string memory outcome = string.concat(
                vm.toString(accepted),
                " ",
                vm.toString(fastPay.lastTransactionIndex()),
                " ",
                vm.toString(fastPay.totalBalance(address(0))),
                " ",
                vm.toString(course.relayer.balance)
            );
            for (uint256 j = 0; j < course.recipients.length; ++j) {
                outcome = string.concat(outcome, " ", vm.toString(course.recipients[j].balance));
            }
            outcomes[i] = string.concat(outcome, " ", vm.toString(reason));
        }
    }

    function _take(IFastPay fastPay, Course calldata course, Step calldata step)
        private
        returns (bool, bytes memory)
    {
        if (step.kind == 0) {
            vm.deal(address(this), step.amount);
            return
                address(fastPay).call{value: step.amount}(
                    abi.encodeCall(IFastPay.depositEther, (step.account))
                );
        }
        if (step.kind == 1) {
            vm.prank(course.relayer);
            return
                address(fastPay)
                    .call(abi.encodeCall(IFastPay.redeem, (step.redemption, step.epoch, step.votes)));
        }
        vm.prank(address(fastPay.council()));
        return address(fastPay)
            .call(
                abi.encodeCall(
                    IFastPay.install, (step.next, address(0), step.compromisedSince, bytes32(uint256(3)))
                )
            );
    }

    function _deploy(Course calldata course) private returns (IFastPay) {
        vm.chainId(course.chainId);
        // All that is held may leave in a day, so a redemption passes where the steps are a day apart.
        SafetyParameters memory parameters =
            SafetyParameters(1 days, 7 days, 1 days, 10_000, 21 days, course.votesValidity, 3 days);
        // As a chain has it: a contract's first creation has the nonce 1 (EIP-161), which the cheat leaves at 0.
        vm.setNonce(course.deployment, 1);
        address council = deployCode("Council.sol:Council", abi.encode(course.deployment, address(0)));
        bytes memory arguments = abi.encode(course.first, address(0), council, parameters, new AssetCap[](0));
        deployCodeTo("FastPay.sol:FastPay", arguments, course.deployment);
        return IFastPay(payable(course.deployment));
    }
}
