// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {Payouts} from "../contracts/libraries/Payouts.sol";
import {MoodyRecipient, Vault} from "./mocks/Recipients.sol";
import {ZooToken} from "./tokens/WeirdTokens.sol";
import {CouncilTest} from "./trees/CouncilTest.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

/// @title Attacks from outside that once worked, or were tried
/// @notice What a thief does with keys is in `Thief.t.sol`.
contract AttacksTest is CouncilTest {
    address private _attacker = makeAddr("attacker");

    // -------------------------------------------------------------------- claims that nobody could call for

    /// @dev Whoever calls from within the recipient makes its payout a claim, and takes nothing by that.
    function test_AForcedClaimIsPaidByAnyone() public {
        Vault vault = new Vault();
        Redemption memory item = redemption(ETHER, 5 ether, 1 ether, 0);
        item.recipient = address(vault);
        bytes memory call = abi.encodeCall(IFastPay.redeem, (item, 0, certify(item)));
        vm.prank(_attacker);
        vault.poke(address(fastPay), call);
        assertEq(fastPay.claimOf(address(vault), ETHER), 5 ether); // the fee too: the vault brought it
        fastPay.claimFor(address(vault), ETHER, 5 ether);
        assertEq(address(vault).balance, 5 ether);
    }

    /// @dev Neither contract can do anything about that; wallets warn.
    function test_AClaimOfAnotherFastPayStays() public {
        Redemption memory item = redemption(ETHER, 5 ether, 0, 0);
        item.recipient = address(deploy(4));
        redeem(item);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.ClaimRefused.selector, item.recipient, ETHER, 5 ether)
        );
        fastPay.claimFor(item.recipient, ETHER, 5 ether);
    }

    /// @dev A rebase down leaves less than claims that have merged: each takes what there is.
    function test_AClaimIsTakenInParts() public {
        LimitedToken limited = new LimitedToken();
        limited.mint(alice, 1000);
        fundToken(limited, 1000);
        limited.setMost(10);
        redeem(redemption(address(limited), 60, 0, 0));
        redeem(redemption(address(limited), 30, 0, 1));
        uint256 owed = fastPay.claimOf(bob, address(limited));
        assertEq(owed, 90);
        vm.startPrank(bob);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.ClaimRefused.selector, bob, address(limited), owed));
        fastPay.claim(address(limited), bob, owed);
        for (uint256 i = 0; i < 9; ++i) {
            fastPay.claim(address(limited), bob, 10);
        }
        vm.stopPrank();
        assertEq(limited.balanceOf(bob), 90);
        assertHolding(address(limited), 910, 0);
    }

    // --------------------------------------------------------------------------------- the outflow limit

    function test_TheWaitIsBoundedWhateverTheGuardianDoes() public {
        Redemption memory item = enqueue(0);
        (uint256 executableAt,,,) = fastPay.queued(ACCOUNT, 0);
        vm.prank(guardian);
        fastPay.postpone(0, 30 days);
        vm.warp(executableAt + 30 days - 1);
        vm.prank(guardian);
        fastPay.pause();
        vm.warp(executableAt + 31 days - 1);
        fastPay.executeQueued(item, "");
        assertEq(bob.balance, item.amount - item.fee);
    }

    // ------------------------------------------------------------------------------------- committees

    /// @dev Whoever brings the votes first may put anything for the half of the proofs that the contract cannot check. The
    /// announcement is the same: who voted and who accepts has checked proofs of its own.
    function test_NoiseInTheProofsStopsNobody() public {
        Announcement memory next = announcementOfNext();
        bytes32 id = council.announcementDigest(next);
        bytes memory proofs = proofsOf(1);
        for (uint256 i = 65; i < 129; ++i) {
            proofs[i] = 0;
        }
        bytes memory votes = votesIn(0, id);
        vm.prank(_attacker);
        council.announce(next, proofs, votes);
        endorse(id);
        install(next, mature(id));
        assertEq(fastPay.epoch(), 1);
    }

    /// @dev From within a payout nothing of the committee changes, so that all of a call is for one epoch.
    function test_NoCommitteeIsInstalledWithinAPayout() public {
        MoodyRecipient owner = claimant(0);
        Announcement memory next = announcementOfNext();
        uint256 blockNumber = mature(announce(next));
        bytes memory votes = acceptances(next, blockNumber);
        owner.setCallback(address(council), abi.encodeCall(ICouncil.install, (next, blockNumber, votes)));
        fastPay.claimFor(address(owner), ETHER, 1 ether);
        assertTrue(owner.called() && !owner.succeeded());
        assertEq(
            owner.answer(),
            abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector)
        );
        assertEq(fastPay.epoch(), 0);
        council.install(next, blockNumber, votes);
    }

    // ------------------------------------------------------------------------------ chains and numbers

    mapping(bytes32 sender => mapping(uint64 sequence => bool)) private _spent;

    // ------------------------------------------------------------------- cheap where it is tried, dear where it is run

    /// @dev With a limit that covers each payout's full allowance, no payee stops the others, whatever it shows to a
    /// simulation. Such a batch of a hundred fits into one transaction.
    function test_PayeesThatBurnTheirAllowanceStopNobody() public {
        TwoFacedPayee payee = new TwoFacedPayee();
        for (uint64 bad = 1; bad <= 99; bad += 14) {
            uint256 state = vm.snapshotState();
            Redemption[] memory items = new Redemption[](bad + 1);
            for (uint64 i = 0; i < bad; ++i) {
                items[i] = redemption(ETHER, 1, 0, i);
                items[i].recipient = address(payee);
            }
            items[bad] = redemption(ETHER, 1 ether, 0, bad);
            bytes memory votes = batchVotes(0, items);
            uint256 limit = 140_000 * items.length + 300_000;
            assertLt(limit, 1 << 24);
            vm.txGasPrice(1 gwei);
            fastPay.redeemBatch{gas: limit}(items, 0, votes);
            assertEq(bob.balance, 1 ether);
            assertEq(fastPay.claimOf(address(payee), ETHER), bad);
            vm.txGasPrice(0);
            vm.revertToState(state);
        }
    }

    function test_ATokenThatBurnsItsAllowanceStopsNobody() public {
        TwoFacedToken hostile = new TwoFacedToken();
        hostile.mint(alice, 1e6);
        fundToken(hostile, 1e6);
        Redemption[] memory items = new Redemption[](11);
        for (uint64 i = 0; i < 10; ++i) {
            items[i] = redemption(address(hostile), 1, 0, i);
        }
        items[10] = redemption(ETHER, 1 ether, 0, 10);
        bytes memory votes = batchVotes(0, items);
        vm.txGasPrice(1 gwei);
        fastPay.redeemBatch{gas: (Payouts.TOKEN_GAS + 60_000) * 10 + 300_000}(items, 0, votes);
        assertEq(bob.balance, 1 ether);
        assertEq(fastPay.claimOf(bob, address(hostile)), 10);
    }
}

/// @title Refuses ETH wherever gas has a price, which it has not in a simulation
contract TwoFacedPayee {
    receive() external payable {
        if (tx.gasprice != 0) {
            assembly {
                invalid()
            }
        }
    }
}

/// @title As `TwoFacedPayee`, a token
contract TwoFacedToken is ZooToken {
    function transfer(address to, uint256 value) public override returns (bool) {
        if (tx.gasprice != 0) {
            assembly {
                invalid()
            }
        }
        return super.transfer(to, value);
    }
}

/// @title Lets only so much go at once
contract LimitedToken is ZooToken {
    uint256 private _most = type(uint256).max;

    function setMost(uint256 most) external {
        _most = most;
    }

    function transfer(address to, uint256 value) public override returns (bool) {
        require(value <= _most, "too much at once");
        return super.transfer(to, value);
    }
}
