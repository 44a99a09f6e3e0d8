// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient} from "../mocks/Recipients.sol";
import {HostileTest} from "./HostileTest.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

/// @title Recipients and senders of ETH that do not play along
contract HostileRecipientsTest is HostileTest {
    /// @dev On each way out: what refuses, burns its gas or answers at length delays nobody and costs within bounds.
    function test_EveryWayOutSurvivesEveryRecipient() public {
        for (uint256 mood = 0; mood < 5; ++mood) {
            uint256 state = vm.snapshotState();
            address recipient = address(new MoodyRecipient(MoodyRecipient.Mood(mood)));
            bool pays = mood == uint256(MoodyRecipient.Mood.Accepts)
                || mood == uint256(MoodyRecipient.Mood.ReturnsMuch);
            Redemption[] memory batch = new Redemption[](2);
            (batch[0], batch[1]) = (order(1 ether, 0), order(1 ether, 1));
            batch[0].recipient = recipient;
            bytes memory votes = batchVotes(0, batch);
            vm.prank(relayer);
            fastPay.redeemBatch{gas: 1_000_000}(batch, 0, votes);
            assertEq(bob.balance, 0.9 ether);

            Redemption memory late = order(2 * LIMIT, 2);
            late.recipient = recipient;
            redeem(late);
            wait(3 days);
            fastPay.executeQueued{gas: 1_000_000}(late, "");

            uint256 due = 0.9 ether + late.amount - late.fee;
            assertEq(recipient.balance, pays ? due : 0);
            assertEq(fastPay.claimOf(recipient, ETHER), pays ? 0 : due);
            assertEq(relayer.balance, 0.2 ether + late.fee);
            vm.revertToState(state);
        }
    }

    function test_NoFunctionCanBeReEnteredByARecipientOfEther() public {
        bytes[] memory calls = callsOfEachFunction(77);
        for (uint256 i = 0; i < calls.length; ++i) {
            uint256 state = vm.snapshotState();
            MoodyRecipient owner = claimant(0);
            owner.setCallback(address(fastPay), calls[i]);
            owner.claim(fastPay, ETHER); // in which gas has no bound
            assertFalse(owner.succeeded(), vm.toString(i));
            assertEq(
                bytes4(owner.answer()),
                ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector,
                vm.toString(i)
            );
            vm.revertToState(state);
        }
    }

    /// @dev By selfdestruct, by a block's reward, or before the contract exists: it comes without a call.
    function test_ForcedEtherIsNobodys() public {
        vm.deal(address(this), 5 ether);
        new Bomb{value: 5 ether}(payable(address(fastPay)));
        assertEq(address(fastPay).balance, HELD + 5 ether);
        assertEq(fastPay.totalBalance(ETHER), HELD);
        assertEq(fastPay.outflowAvailable(ETHER), LIMIT);
        assertEq(fastPay.lastTransactionIndex(), 3); // the three deposits of the set-up
        vm.coinbase(address(fastPay));
        redeem(order(LIMIT, 0));
        assertHolding(ETHER, HELD - LIMIT, 0);
    }

    function test_EtherWaitingAtTheNextCommitteesAddressStopsNoRotation() public {
        // The address follows from the contract's own, so anyone can send ether there first.
        vm.deal(vm.computeCreateAddress(address(fastPay), 2), 1 ether);
        rotate();
        assertEq(fastPay.epoch(), 1);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(committeeOf(1)));
    }
}

/// @title Sends its ether to somebody who is not asked
contract Bomb {
    constructor(address payable target) payable {
        assembly {
            selfdestruct(target)
        }
    }
}
