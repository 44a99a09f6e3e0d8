// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, CapRaise, ICouncil, Outcome} from "../contracts/interfaces/ICouncil.sol";
import {IFastPay, Redemption, SafetyParameters} from "../contracts/interfaces/IFastPay.sol";
import {UnlockTest} from "./trees/UnlockTest.sol";

/// @title What a thief can do with which keys, and what honest people do about it
/// @notice Each test is a row of the table in docs/CONTRACT.md. The committee has four members, so f = 1 and a quorum is 3.
/// Keys are copied: their owners still have them too, unless a test says that they are lost. A tenth of what is held may
/// leave at once, and what waits does so for three days.
contract ThiefTest is UnlockTest {
    bytes32 private constant MADE_UP = keccak256("an account that the thief made up");

    address private _thief = makeAddr("thief");

    // ------------------------------------------------------------------------------- too few keys

    function test_FKeysDoNothing() public {
        _nothingWith(1);
    }

    function test_FAndOneKeysDoNothing() public {
        _nothingWith(2);
    }

    /// @dev Their owners still have them: with the others they are a quorum, and the guardian endorses.
    function test_FAndOneCopiedKeysAreReplacedInADay() public {
        _nothingWith(2);
        uint256 start = vm.getBlockTimestamp();
        installEndorsed(announcementOfNext());
        assertLe(vm.getBlockTimestamp(), start + SHORT + 1 hours);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(committeeOf(1)));
    }

    /// @dev Their owners lost them: no quorum is left. What is there waits for the recovery address.
    function test_FAndOneLostKeysAreReplacedByTheRecoveryAddress() public {
        Announcement memory next = recoveryOfNext();
        bytes32 id = announceRecovery(next);
        wait(NOTICE);
        install(next, mature(id));
        Redemption memory item = order(LIMIT, 0);
        bytes memory votes = certifyIn(1, item);
        fastPay.redeem(item, 1, votes);
        assertEq(bob.balance, LIMIT - item.fee);
    }

    // ----------------------------------------------------------------------------------- a quorum

    /// @dev One share at once, and what refills until its votes end: a day, with the guardian's endorsement.
    function test_AQuorumTakesAShareAndADaysRefill() public {
        Redemption[] memory waiting = _theft(0);
        assertEq(_thief.balance, LIMIT);
        // Its own committee, at once. It waits two weeks.
        Announcement memory own = announcementOfNext();
        (own.authorities, own.guardian) = (committeeOf(7), _thief);
        announce7(own);

        // Honest people, an hour later.
        wait(1 hours);
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        bytes32 id = announce(next);
        endorse(id);
        vm.prank(guardian);
        fastPay.postpone(0, 30 days);
        uint256 before = _thief.balance;
        wait(SHORT);
        _takeAllThatRefilled();
        install(next, mature(id));

        // The rest is safe: votes, announcements and what waits.
        assertLt(_thief.balance - before, LIMIT * 11 / 10);
        _endedFor(0);
        _cannotBeExecuted(waiting);
        _release(waiting[0]);
        assertEq(fastPay.totalQueued(ETHER), waiting[1].amount);
        bytes32 ended = council.announcementDigest(own);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, ended));
        council.mature(ended);
        // Honest redemptions are voted for again, and paid.
        _honestIsPaid(1);
    }

    /// @dev The share is one of all that is held: money that the thief brought along makes it larger, up to the deposit cap.
    /// It gets that money back as any depositor does.
    function test_AQuorumTakesAShareOfWhatItDepositsToo() public {
        uint256 room = fastPay.depositCap(ETHER) - HELD;
        vm.deal(_thief, room + 1);
        vm.startPrank(_thief);
        vm.expectPartialRevert(IFastPay.AssetCapExceeded.selector);
        fastPay.depositEther{value: room + 1}(MADE_UP);
        fastPay.depositEther{value: room}(MADE_UP);
        vm.stopPrank();
        uint256 share = fastPay.outflowAvailable(ETHER);
        assertEq(share, fastPay.depositCap(ETHER) / 10);
        Redemption memory item = _steal(uint128(share), 0);
        fastPay.redeem(item, 0, certifyIn(0, item));
        assertEq(_thief.balance, share + 1);
        assertEq(fastPay.outflowAvailable(ETHER), 0);
    }

    /// @dev What is queued at the very end waits as long as any, and needs votes that the thief does not have.
    function test_AQuorumsLastSecondIsNoBetter() public {
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        bytes32 id = announce(next);
        endorse(id);
        uint256 blockNumber = mature(id);
        Redemption[] memory waiting = _theft(0);
        install(next, blockNumber);
        wait(60 days);
        _cannotBeExecuted(waiting);
    }

    /// @dev Nobody has ever been guardian: nothing shortens the delay and nothing postpones. What is queued waits for three
    /// weeks, so honest people who announce within the first one save it. A share for each window until then is lost.
    function test_AQuorumWithoutAGuardianTakesWhatRefillsInThreeWeeks() public {
        guardian = address(0);
        SafetyParameters memory parameters = tight();
        parameters.outflowDelay = 21 days;
        fastPay = deploy(4, parameters);
        council = fastPay.council();
        fundEther(HELD);

        Redemption[] memory waiting = _theft(0);
        wait(7 days - 1);
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        bytes32 id = announce(next);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, _thief));
        vm.prank(_thief);
        council.endorse(id);
        wait(LONG);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.TooEarly.selector, vm.getBlockTimestamp() + 1));
        fastPay.executeQueued(waiting[0], "");
        _takeAllThatRefilled();
        install(next, mature(id));
        _endedFor(0);
        _cannotBeExecuted(waiting);
        _honestIsPaid(1);
    }

    /// @dev The guardian was given up by a rotation, or its key is lost: nothing shortens the delay and nothing postpones,
    /// and the delay is that of a deployment with a guardian. What waits is paid after three days.
    function test_AQuorumWhoseGuardianIsLostTakesAll() public {
        rotate(committeeOf(1), address(0));
        Redemption[] memory waiting = _theft(1);
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 1;
        bytes32 id = announce(next);
        wait(3 days);
        uint256 installableAt = vm.getBlockTimestamp() - 3 days + LONG;
        vm.expectRevert(abi.encodeWithSelector(ICouncil.NotInstallable.selector, id, installableAt));
        council.mature(id);
        fastPay.executeQueued(waiting[0], "");
        assertEq(_thief.balance, LIMIT + waiting[0].amount);
    }

    /// @dev The same where the delay was chosen long enough at deployment: what waits is safe.
    function test_AQuorumWhoseGuardianIsLostTakesNothingOfALongQueue() public {
        SafetyParameters memory parameters = tight();
        parameters.outflowDelay = 21 days;
        fastPay = deploy(4, parameters);
        council = fastPay.council();
        fundEther(HELD);
        rotate(committeeOf(1), address(0));
        Redemption[] memory waiting = _theft(1);
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 1;
        install(next, mature(announce(next)));
        wait(60 days);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.EpochCompromised.selector, 1));
        fastPay.executeQueued(waiting[0], "");
    }

    /// @dev And its committee takes over, if nobody does anything for two weeks.
    function test_AQuorumThatNobodyStopsInstallsItsOwnCommittee() public {
        Announcement memory own = announcementOfNext();
        own.authorities = committeeOf(7);
        bytes32 id = announce7(own);
        uint256 blockNumber = mature(id);
        bytes memory votes = votesIn(7, council.acceptanceDigest(1, id, blockhash(blockNumber)));
        council.install(own, blockNumber, votes);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(committeeOf(7)));
    }

    /// @dev A higher cap takes as long as a committee, and ends with the installation of one.
    function test_AQuorumRaisesACapAfterTwoWeeks() public {
        CapRaise memory raise = raiseTo(5000 ether);
        bytes32 id = announceCap(raise);
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        installEndorsed(next);
        wait(LONG);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
        council.raiseCap(raise);
    }

    /// @dev An Ed25519 account gets stuck, for whose number anybody may ask; until the keys are worth nothing.
    function test_AQuorumUpholdsAnOrderThatDoesNotExist() public {
        request(0);
        uphold(0);
        assertUnlock(0, Outcome.Upheld, address(0));
        // Not so an Ethereum account, for whose number only its owner may ask.
        vm.deal(_thief, BOND);
        vm.prank(_thief);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.NotOwner.selector, ownAccount));
        council.requestUnlock{value: BOND}(ownAccount, 0, "");

        installAfterTheft();
        assertUnlock(0, Outcome.None, address(0));
        // What the owner had signed is upheld, or the number is voided.
        bytes32 digest = orderDigest(order(1 ether, 0));
        council.upholdSequence(ACCOUNT, 0, digest, certificateVotes(1, 0, digest));
        assertUnlock(0, Outcome.Upheld, address(0));
    }

    /// @dev It voids what a thief asked about a week before, and nothing else before it is replaced.
    function test_AQuorumVoidsWhatWasAskedAboutAWeekBefore() public {
        request(1);
        wait(WINDOW);
        voidNumber(1);
        request(0);
        bytes memory votes = voidVotes(0, 0);
        wait(2 days);
        vm.expectPartialRevert(ICouncil.NotVoidable.selector);
        council.voidSequence(ACCOUNT, 0, false, votes);
        installAfterTheft();
        wait(WINDOW);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.voidSequence(ACCOUNT, 0, false, votes);
    }

    /// @dev All members void at once, but not soon after an installation. What they void is spent for ever.
    function test_AllMembersVoidNumbers() public {
        request(0);
        council.voidSequence(ACCOUNT, 0, true, unanimousVotes(0, 0, 4));
        installAfterTheft();
        assertUnlock(0, Outcome.Voided, address(0));
        _numberIsSpent();
        request(1);
        bytes memory votes = unanimousVotes(1, 1, 4);
        wait(13 days);
        vm.expectPartialRevert(ICouncil.NotVoidable.selector);
        council.voidSequence(ACCOUNT, 1, true, votes);
    }

    function _numberIsSpent() private {
        Redemption memory item = order(1 ether, 0);
        bytes memory votes = certifyIn(1, item);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 0));
        fastPay.redeem(item, 1, votes);
    }

    // ------------------------------------------------------------------------- an earlier quorum

    function test_AQuorumOfTheEpochBeforeTakesAShareUntilItsVotesEnd() public {
        rotate();
        _theft(0);
        assertEq(_thief.balance, LIMIT);
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        installEndorsed(next);
        _endedFor(0);
        assertTrue(fastPay.compromised(0) && fastPay.compromised(1));
    }

    /// @dev Where nobody does anything about it, its votes end by themselves.
    function test_AQuorumOfTheEpochBeforeEndsByItself() public {
        rotate();
        wait(fastPay.epochValidUntil(0) - vm.getBlockTimestamp());
        Redemption memory last = _steal(LIMIT, 0);
        fastPay.redeem(last, 0, certifyIn(0, last));
        wait(1);
        _endedFor(0);
        assertEq(fastPay.safetyParameters().votesValidity, 14 days);
    }

    /// @dev Neither does more with the other: a committee of the epoch before announces nothing that could be endorsed.
    function test_AQuorumOfTheEpochBeforeAndTheGuardianDoNoMoreThanEach() public {
        rotate();
        Announcement memory own = announcementOfNext();
        own.authorities = committeeOf(7);
        bytes memory proofs = proofsOf(7);
        bytes32 id = council.announcementDigest(own);
        bytes memory votes = votesIn(0, id);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.announce(own, proofs, votes);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.NotAnnounced.selector, id));
        vm.prank(guardian);
        council.endorse(id);
        _theft(0);
        assertEq(_thief.balance, LIMIT);
        // The owners have the guardian's key, too.
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        installEndorsed(next);
        _endedFor(0);
    }

    /// @dev Neither a committee nor a cap, with votes that it kept back or gives now, and it shows no life.
    function test_AnEpochThatEndedAnnouncesNothing() public {
        (Announcement memory kept, CapRaise memory cap) = (announcementOfNext(), raiseTo(5000 ether));
        (kept.authorities, kept.guardian) = (committeeOf(7), _thief);
        bytes memory proofs = proofsOf(7);
        bytes memory votes = votesIn(0, council.announcementDigest(kept));
        bytes memory capVotes = votesIn(0, council.capRaiseDigest(cap));
        bytes memory life = votesIn(0, council.heartbeatDigest(0, blockhash(999)));
        rotate();
        vm.expectRevert(abi.encodeWithSelector(ICouncil.WrongEpoch.selector, 1, 2));
        council.announce(kept, proofs, votes);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.WrongEpoch.selector, 0, 1));
        council.announceCap(cap, capVotes);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.heartbeat(999, life);

        (kept.epoch, kept.compromisedSince, cap.epoch) = (2, 2, 1);
        votes = votesIn(0, council.announcementDigest(kept));
        capVotes = votesIn(0, council.capRaiseDigest(cap));
        life = votesIn(0, council.heartbeatDigest(1, blockhash(999)));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.announce(kept, proofs, votes);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.announceCap(cap, capVotes);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.heartbeat(999, life);
    }

    function test_AQuorumOfAnEarlierEpochDoesNothing() public {
        rotate();
        rotate();
        _endedFor(0);
    }

    // ---------------------------------------------------------------------------------- the guardian

    /// @dev Half of the time paused, and thirty days of postponement for each epoch. It takes nothing.
    function test_TheGuardianDelays() public {
        Redemption memory item = enqueue(0);
        vm.startPrank(guardian);
        fastPay.pause();
        fastPay.postpone(0, 30 days);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PostponedTooLong.selector, 0, 30 days, 30 days));
        fastPay.postpone(0, 1);
        uint256 nextAt = fastPay.nextPauseAt();
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PauseTooEarly.selector, nextAt));
        fastPay.pause();
        vm.stopPrank();
        // Honest people replace it; it does not endorse that.
        Announcement memory next = announcementOfNext();
        next.guardian = alice;
        install(next, mature(announce(next)));
        assertEq(fastPay.guardian(), alice);
        wait(30 days);
        fastPay.executeQueued(item, "");
        assertEq(bob.balance, item.amount - item.fee);
    }

    /// @dev Whoever has its key pauses whenever it may, and postpones what waits. An honest redemption waits for one pause at
    /// most, what waits in the queue for thirty days and one pause, and nothing is lost. A quorum ends it after two weeks.
    function test_TwoHundredDaysOfPausesDelayEachRedemptionByOne() public {
        uint256 start = vm.getBlockTimestamp();
        Redemption memory waiting = enqueue(0);
        vm.prank(guardian);
        fastPay.postpone(0, 30 days);
        (uint256 executableAt,,,) = fastPay.queued(ACCOUNT, 0);
        assertEq(executableAt, start + 33 days);
        (uint256 paused, uint64 sequence) = (0, 1);
        while (fastPay.nextPauseAt() < start + 200 days) {
            if (vm.getBlockTimestamp() < fastPay.nextPauseAt()) vm.warp(fastPay.nextPauseAt());
            uint256 from = vm.getBlockTimestamp();
            vm.prank(guardian);
            fastPay.pause();
            Redemption memory item = order(1 ether / 10, sequence++);
            bytes memory votes = certifyIn(0, item);
            vm.expectRevert(abi.encodeWithSelector(IFastPay.PausedUntil.selector, from + 1 days));
            fastPay.redeem(item, 0, votes);
            wait(1 days);
            fastPay.redeem(item, 0, votes);
            paused += vm.getBlockTimestamp() - from;
            if (vm.getBlockTimestamp() >= executableAt && fastPay.totalQueued(ETHER) > 0) {
                assertLe(vm.getBlockTimestamp(), executableAt + 8 days);
                fastPay.executeQueued(waiting, "");
            }
            // Neither more of it, until a week has passed.
            uint256 nextAt = fastPay.nextPauseAt();
            assertEq(nextAt, vm.getBlockTimestamp() + 7 days);
            vm.expectRevert(abi.encodeWithSelector(IFastPay.PauseTooEarly.selector, nextAt));
            vm.prank(guardian);
            fastPay.pause();
            vm.expectRevert(abi.encodeWithSelector(IFastPay.PostponedTooLong.selector, 0, 30 days, 30 days));
            vm.prank(guardian);
            fastPay.postpone(0, 1);
        }
        assertEq(sequence - 1, 25);
        assertEq(paused, 25 days);
        assertEq(bob.balance, (waiting.amount - waiting.fee) + 25 * 0.09 ether);

        // Also while it is paused.
        vm.warp(fastPay.nextPauseAt());
        vm.prank(guardian);
        fastPay.pause();
        Announcement memory next = announcementOfNext();
        next.guardian = alice;
        bytes32 id = announce(next);
        wait(8 days);
        vm.prank(guardian);
        fastPay.pause();
        install(next, mature(id));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotGuardian.selector, guardian));
        vm.prank(guardian);
        fastPay.pause();
    }

    function test_TheGuardianEndorsesNothingThatNoQuorumAnnounced() public {
        Announcement memory own = announcementOfNext();
        bytes32 id = council.announcementDigest(own);
        vm.prank(guardian);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.NotAnnounced.selector, id));
        council.endorse(id);
        bytes memory proofs = proofsOf(1);
        vm.prank(guardian);
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        council.announce(own, proofs, "");
    }

    function test_ALostGuardianIsReplacedAfterTwoWeeks() public {
        Announcement memory next = announcementOfNext();
        next.guardian = bob;
        bytes32 id = announce(next);
        wait(LONG);
        install(next, mature(id));
        assertEq(fastPay.guardian(), bob);
    }

    function test_FAndOneKeysAndTheGuardianDoNoMoreThanTheGuardian() public {
        _nothingWith(2);
        test_TheGuardianDelays();
    }

    /// @dev The worst of all: a day after its announcement the contract has the thief's committee.
    function test_AQuorumAndTheGuardianInstallTheirCommitteeInADay() public {
        Announcement memory own = announcementOfNext();
        (own.authorities, own.guardian, own.recovery) = (committeeOf(7), _thief, _thief);
        bytes32 id = announce7(own);
        endorse(id);
        Redemption[] memory waiting = _theft(0);
        vm.prank(guardian);
        fastPay.pause(); // so that nobody leaves meanwhile
        wait(1 hours);
        // Honest people have the same keys but come later.
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        bytes32 honest = announce(next);
        uint256 blockNumber = mature(id);
        council.install(own, blockNumber, votesIn(7, council.acceptanceDigest(1, id, blockhash(blockNumber))));
        vm.expectRevert(abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, honest));
        council.mature(honest);
        wait(3 days);
        fastPay.executeQueued(waiting[0], "");
        assertEq(_thief.balance, LIMIT + waiting[0].amount);
    }

    /// @dev Honest people who still have both, and are first, win in the same way.
    function test_AQuorumAndTheGuardianLoseWhenTheOwnersAreFirst() public {
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        bytes32 id = announce(next);
        endorse(id);
        wait(1 hours);
        Announcement memory own = announcementOfNext();
        own.authorities = committeeOf(7);
        bytes32 theirs = announce7(own);
        endorse(theirs);
        install(next, mature(id));
        vm.expectRevert(abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, theirs));
        council.mature(theirs);
    }

    // --------------------------------------------------------------------------- the recovery address

    function test_TheRecoveryAddressDoesNothingWhileACommitteeLives() public {
        for (uint256 i = 0; i < 4; ++i) {
            Announcement memory own = recoveryOfNext();
            (own.guardian, own.recovery) = (_thief, _thief);
            bytes32 id = announceRecovery(own);
            wait(NOTICE - 1);
            heartbeat();
            wait(1);
            vm.expectRevert(abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
            council.mature(id);
        }
    }

    /// @dev The notice is all that is left then: thirty days in which people publish what they hold.
    function test_TheRecoveryAddressOfADeadCommitteeInstallsAnyCommittee() public {
        Announcement memory own = recoveryOfNext();
        own.authorities = committeeOf(7);
        bytes memory proofs = proofsOf(7);
        vm.prank(recovery);
        council.announceRecovery(own, proofs);
        bytes32 id = council.announcementDigest(own);
        uint256 blockNumber = mature(id);
        bytes memory votes = votesIn(7, council.acceptanceDigest(1, id, blockhash(blockNumber)));
        council.install(own, blockNumber, votes);
        _endedFor(0);
    }

    function test_FAndOneKeysAndTheRecoveryAddressDoNoMoreThanTheRecoveryAddress() public {
        _nothingWith(2);
        test_TheRecoveryAddressDoesNothingWhileACommitteeLives();
    }

    /// @dev A recovery is not endorsed: its thirty days of notice stay.
    function test_TheGuardianAndTheRecoveryAddressDoNoMoreThanEach() public {
        Announcement memory own = recoveryOfNext();
        bytes32 id = announceRecovery(own);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.RecoveryNotEndorsable.selector, id));
        vm.prank(guardian);
        council.endorse(id);
        vm.prank(guardian);
        fastPay.pause();
        heartbeat();
        wait(NOTICE);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.AnnouncementEnded.selector, id));
        council.mature(id);
    }

    function test_AQuorumAndTheRecoveryAddressDoNoMoreThanTheQuorum() public {
        bytes memory proofs = proofsOf(1);
        Announcement memory own = announcementOfNext();
        own.compromisedSince = 0;
        uint256 silentAt = council.installedAt() + SILENCE;
        vm.prank(recovery);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.CommitteeAlive.selector, silentAt));
        council.announceRecovery(own, proofs);
    }

    // ------------------------------------------------------------------------------------- private

    /// @dev The thief redeems a share at once, and queues twice what there is.
    function _theft(uint64 epoch) private returns (Redemption[] memory waiting) {
        Redemption memory first = _steal(LIMIT, 0);
        bytes memory votes = certifyIn(epoch, first);
        vm.prank(_thief);
        fastPay.redeem(first, epoch, votes);
        waiting = new Redemption[](2);
        for (uint64 i = 0; i < 2; ++i) {
            waiting[i] = _steal(HELD - LIMIT, 1 + i);
            votes = certifyIn(epoch, waiting[i]);
            vm.prank(_thief);
            fastPay.redeem(waiting[i], epoch, votes);
        }
        assertEq(fastPay.totalQueued(ETHER), 2 * (HELD - LIMIT));
        assertHolding(ETHER, HELD - LIMIT, 0); // honest redemptions find their money
    }

    function _takeAllThatRefilled() private {
        Redemption memory again = _steal(uint128(fastPay.outflowAvailable(ETHER)), 50);
        bytes memory votes = certifyIn(0, again);
        vm.prank(_thief);
        fastPay.redeem(again, 0, votes);
    }

    function _steal(uint128 amount, uint64 sequence) private view returns (Redemption memory item) {
        item = redemption(ETHER, amount, 0, sequence);
        (item.sender, item.recipient) = (MADE_UP, _thief);
    }

    /// @dev As `announce`, of the committee whose keys are those of epoch 7.
    function announce7(Announcement memory own) private returns (bytes32 id) {
        id = council.announcementDigest(own);
        council.announce(own, proofsOf(7), votesIn(fastPay.epoch(), id));
    }

    function _endedFor(uint64 epoch) private {
        Redemption memory item = _steal(1, 99);
        bytes memory votes = certifyIn(epoch, item);
        vm.expectPartialRevert(IFastPay.EpochEnded.selector);
        fastPay.redeem(item, epoch, votes);
    }

    function _cannotBeExecuted(Redemption[] memory waiting) private {
        wait(60 days);
        for (uint256 i = 0; i < waiting.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IFastPay.EpochCompromised.selector, 0));
            fastPay.executeQueued(waiting[i], "");
        }
    }

    function _release(Redemption memory item) private {
        uint64 epoch = fastPay.epoch();
        fastPay.releaseQueued(item, votesIn(epoch, fastPay.releaseVoteDigest(epoch, item)));
    }

    function _honestIsPaid(uint64 epoch) private {
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = order(1 ether, 5);
        fastPay.redeemBatch(batch, epoch, batchVotes(epoch, batch));
        assertEq(bob.balance, 0.9 ether);
    }

    /// @dev With the votes of so many members, whatever they are for.
    function _nothingWith(uint256 keys) private {
        Redemption memory item = _steal(LIMIT, 0);
        Announcement memory own = announcementOfNext();
        bytes memory proofs = proofsOf(1);
        bytes memory votes = votesOf(0, keys, fastPay.redemptionVoteDigest(0, item));
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        fastPay.redeem(item, 0, votes);
        // One of them twice, to make up the number.
        votes = bytes.concat(votes, votesOf(0, 3 - keys, fastPay.redemptionVoteDigest(0, item)));
        vm.expectPartialRevert(IFastPay.VotesNotAscending.selector);
        fastPay.redeem(item, 0, votes);
        votes = votesOf(0, keys, council.announcementDigest(own));
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        council.announce(own, proofs, votes);
        votes = votesOf(0, keys, council.heartbeatDigest(0, blockhash(999)));
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        council.heartbeat(999, votes);
        assertEq(_thief.balance, 0);
        request(0);
        votes = votesOf(0, keys, council.certificateVoteDigest(0, ACCOUNT, 0, DIGEST));
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        council.upholdSequence(ACCOUNT, 0, DIGEST, votes);
        wait(WINDOW);
        votes = votesOf(0, keys, council.voidVoteDigest(0, ACCOUNT, 0, false));
        vm.expectPartialRevert(IFastPay.WrongVotesLength.selector);
        council.voidSequence(ACCOUNT, 0, false, votes);
    }
}
