// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {Payouts} from "../contracts/libraries/Payouts.sol";
import {MoodyRecipient, Splitter, Vault} from "./mocks/Recipients.sol";
import {MoodyToken, ZooToken} from "./tokens/WeirdTokens.sol";
import {CouncilTest} from "./trees/CouncilTest.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

/// @title Attacks from outside that once worked, or were tried
/// @notice What a thief does with keys is in `Thief.t.sol`.
contract AttacksTest is CouncilTest {
    address private _attacker = makeAddr("attacker");

    // -------------------------------------------------------------------- claims that nobody could call for

    function test_AContractThatCannotClaimIsPaidByAnyone() public {
        Redemption memory item = redemption(ETHER, 5 ether, 0, 0);
        item.recipient = address(new Splitter(6));
        redeem(item);
        assertEq(fastPay.claimOf(item.recipient, ETHER), 5 ether);
        vm.prank(_attacker);
        fastPay.claimFor(item.recipient, ETHER, 5 ether);
        assertEq(item.recipient.balance, 5 ether);
        assertEq(_attacker.balance, 0);
    }

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

    // -------------------------------------------------------------------------------- tokens under water

    /// @dev After a rebase down, a new depositor's tokens would pay the old holders.
    function test_NobodyDepositsIntoATokenUnderWater() public {
        MoodyToken zoo = new MoodyToken();
        zoo.mint(alice, 1000);
        fundToken(zoo, 1000);
        vm.prank(address(fastPay));
        zoo.transfer(_attacker, 500);
        zoo.mint(alice, 500);
        vm.startPrank(alice);
        zoo.approve(address(fastPay), 500);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetUnderCollateralized.selector, address(zoo), 1000, 1500)
        );
        fastPay.depositToken(ACCOUNT, zoo, 500);
        vm.stopPrank();
        // Old holders can leave while there is something.
        redeem(redemption(address(zoo), 100, 0, 0));
        assertEq(zoo.balanceOf(bob), 100);
    }

    // --------------------------------------------------------------------------------- the outflow limit

    /// @dev A large redemption that waits is still held, so the share of the others stays what it was.
    function test_AWhaleThatWaitsLeavesTheOthersTheirShare() public {
        Redemption memory whale = redemption(ETHER, HELD * 9 / 10, 0, 0);
        redeem(whale);
        assertEq(fastPay.outflowAvailable(ETHER), LIMIT);
        redeem(redemption(ETHER, LIMIT, 0, 1));
        assertEq(bob.balance, LIMIT);
        wait(3 days);
        fastPay.executeQueued(whale, "");
    }

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

    /// @dev With borrowed money, all within one transaction.
    function test_AFlashLoanEmptiesNoMoreThanTheBucket() public {
        fastPay = deploy(4, tight()); // without a deposit cap
        fundEther(HELD);
        redeem(redemption(ETHER, LIMIT, 0, 0));
        for (uint64 i = 1; i < 30; ++i) {
            uint128 amount = uint128(i % 2 == 0 ? 5 * HELD : HELD / 20);
            vm.deal(alice, amount);
            vm.prank(alice);
            fastPay.depositEther{value: amount}(ACCOUNT);
            uint256 available = fastPay.outflowAvailable(ETHER);
            redeem(redemption(ETHER, uint128(available < amount ? available : amount), 0, i));
            assertGe(fastPay.totalBalance(ETHER), HELD - LIMIT, "more than a share has left");
        }
    }

    // ------------------------------------------------------------------------------------- committees

    function test_AVoteForACommitteeEnds() public {
        Announcement memory next = announcementOfNext();
        bytes memory votes = votesIn(0, council.announcementDigest(next));
        bytes memory proofs = proofsOf(1);
        wait(3650 days);
        vm.expectRevert();
        council.announce(next, proofs, votes);
    }

    function test_MistypedKeysAreFoundBeforeTheyCount() public {
        Announcement memory next = announcementOfNext();
        for (uint256 i = 0; i < 2; ++i) {
            next.authorities[i].redemptionKey = address(uint160(next.authorities[i].redemptionKey) ^ 1);
        }
        bytes memory votes = votesIn(0, council.announcementDigest(next));
        bytes memory proofs = proofsOf(1);
        vm.expectRevert();
        council.announce(next, proofs, votes);
    }

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

    /// @dev A guardian that does not want to be replaced endorses at once. Those who plan for two weeks are not too late.
    function test_AnEndorsementTakesNoTimeAway() public {
        Announcement memory next = announcementOfNext();
        next.guardian = alice;
        bytes32 id = announce(next);
        endorse(id);
        wait(LONG + LAPSE);
        install(next, mature(id));
        assertEq(fastPay.guardian(), alice);
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

    /// @dev A hundred years without a quorum: the recovery address returns what is there.
    function test_ACommitteeThatIsGoneIsReplaced() public {
        wait(36_500 days);
        vm.roll(10_000_000);
        Announcement memory next = recoveryOfNext();
        install(next, mature(announceRecovery(next)));
        Redemption memory item = order(LIMIT, 0);
        fastPay.redeem(item, 1, certifyIn(1, item));
        assertEq(bob.balance, LIMIT - item.fee);
    }

    // ------------------------------------------------------------------------------ chains and numbers

    function test_VotesOfAnotherChainDoNotCount() public {
        Redemption memory item = order(1 ether, 0);
        bytes memory votes = certify(item);
        Announcement memory next = announcementOfNext();
        bytes memory proofs = proofsOf(1);
        bytes memory announcing = votesIn(0, council.announcementDigest(next));
        uint256 here = block.chainid;
        vm.chainId(999);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.redeem(item, 0, votes);
        vm.expectRevert();
        council.announce(next, proofs, announcing);
        votes = certify(item);
        fastPay.redeem(item, 0, votes); // the fork goes its own way
        vm.chainId(here);
    }

    mapping(bytes32 sender => mapping(uint64 sequence => bool)) private _spent;

    /// @dev Any numbers in any order: each exactly once.
    function testFuzz_EachNumberIsSpentOnce(uint256 seed) public {
        for (uint256 i = 0; i < 12; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint64 sequence = uint64(seed);
            if (seed % 3 == 0) sequence = uint64((seed >> 64) % 600);
            if (seed % 7 == 0) sequence = type(uint64).max - uint64(seed % 3);
            Redemption memory item = redemption(ETHER, 1, 0, sequence);
            item.sender = bytes32((seed >> 200) % 3);
            bytes memory call = abi.encodeCall(IFastPay.redeem, (item, 0, certify(item)));
            (bool done,) = address(fastPay).call(call);
            assertEq(done, !_spent[item.sender][sequence]);
            _spent[item.sender][sequence] = true;
        }
    }

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
