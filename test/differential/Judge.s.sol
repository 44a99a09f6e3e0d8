// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {
    AssetCap,
    Authority,
    IFastPay,
    Redemption,
    SafetyParameters
} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyToken} from "../tokens/WeirdTokens.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {CommonBase} from "forge-std/Base.sol";
import {Script} from "forge-std/Script.sol";
import {StdCheats} from "forge-std/StdCheats.sol";

/// @dev As in core/tests/core/differential/contract.rs.
struct ContractCase {
    uint256 chainId;
    address deployment;
    uint32 votesValidity;
    Authority[][] epochs;
    uint256 sinceRotation;
    uint8 callee;
    Redemption[] redemptions;
    uint64 epoch;
    address guardian;
    bytes votes;
}

/// @title What the contract says of cases that the Rust core judges too
/// @notice Reads `target/differential/cases.txt`, one ABI-encoded `ContractCase` a line, and writes `verdicts.txt`
/// beside it: whether the call went through, and what it reverted with. core/tests/core/differential runs it, and
/// compares.
contract JudgeScript is Script {
    string private constant FOLDER = "target/differential/";

    function run() external {
        string memory cases = string.concat(FOLDER, "cases.txt");
        string memory verdicts = string.concat(FOLDER, "verdicts.txt");
        Judge judge = new Judge();
        for (string memory line = vm.readLine(cases); bytes(line).length > 0; line = vm.readLine(cases)) {
            ContractCase memory next = abi.decode(vm.parseBytes(line), (ContractCase));
            uint256 state = vm.snapshotState();
            (bool accepted, bytes memory reason) = judge.judge(next);
            require(vm.revertToState(state));
            vm.writeLine(verdicts, string.concat(vm.toString(accepted), " ", vm.toString(reason)));
        }
    }
}

/// @title Deploys the contract as a case wants it, and calls it as the case does
contract Judge is CommonBase, StdCheats {
    /// @dev A call of its own for each case, so that its memory is freed.
    function judge(ContractCase calldata given) external returns (bool accepted, bytes memory reason) {
        IFastPay fastPay = _deploy(given);
        for (uint256 i = 0; i < given.redemptions.length; ++i) {
            _fund(fastPay, given.redemptions[i]);
        }
        bytes memory call;
        if (given.callee == 0) {
            call = abi.encodeCall(IFastPay.redeem, (given.redemptions[0], given.epoch, given.votes));
        } else {
            call = abi.encodeCall(IFastPay.redeemBatch, (given.redemptions, given.epoch, given.votes));
        }
        (accepted, reason) = address(fastPay).call(call);
        // What it says it did, it must have done.
        for (uint256 i = 0; i < given.redemptions.length; ++i) {
            Redemption calldata order = given.redemptions[i];
            require(fastPay.isRedeemed(order.sender, order.sequence) == accepted, "what is spent");
        }
    }

    /// @dev Deploys the contract where the case says, and installs all its epochs.
    function _deploy(ContractCase calldata given) private returns (IFastPay fastPay) {
        vm.chainId(given.chainId);
        // All that is held of an asset may leave at once, so that the votes alone decide.
        SafetyParameters memory parameters =
            SafetyParameters(1 days, 7 days, 1 days, 10_000, 3 days, given.votesValidity, 3 days);
        // As a chain has it: a contract's first creation has the nonce 1 (EIP-161), which the cheat leaves at 0.
        vm.setNonce(given.deployment, 1);
        address council = deployCode("Council.sol:Council", abi.encode(given.deployment, address(0)));
        bytes memory arguments =
            abi.encode(given.epochs[0], given.guardian, council, parameters, new AssetCap[](0));
        deployCodeTo("FastPay.sol:FastPay", arguments, given.deployment);
        fastPay = IFastPay(payable(given.deployment));
        for (uint256 i = 0; i + 1 < given.epochs.length; ++i) {
            vm.prank(address(fastPay.council()));
            // forge-lint: disable-next-line(unsafe-typecast) -- an epoch's number
            fastPay.install(given.epochs[i + 1], given.guardian, uint64(i + 1), 0);
        }
        vm.warp(vm.getBlockTimestamp() + given.sinceRotation);
    }

    /// @dev Makes sure that the contract can pay the order, so that only its validity decides.
    function _fund(IFastPay fastPay, Redemption calldata order) private {
        if (order.amount == 0) return;
        if (order.asset == address(0)) {
            vm.deal(address(this), order.amount);
            fastPay.depositEther{value: order.amount}(bytes32(uint256(1)));
            return;
        }
        if (order.asset.code.length == 0) vm.etch(order.asset, address(new MoodyToken()).code);
        MoodyToken(order.asset).mint(address(this), order.amount);
        MoodyToken(order.asset).approve(address(fastPay), order.amount);
        fastPay.depositToken(bytes32(uint256(1)), IERC20(order.asset), order.amount);
    }
}
