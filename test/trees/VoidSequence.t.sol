// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil, Outcome} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {UnlockTest} from "./UnlockTest.sol";

contract VoidSequenceTreeTest is UnlockTest {
    function test_RevertGiven_NobodyHasRequestedTheUnlock() external {
        _fails(voidVotes(0, 7), abi.encodeWithSelector(ICouncil.NotRequested.selector, ACCOUNT, 7));
    }

    function test_RevertGiven_TheNumberIsUpheld() external {
        request(7);
        uphold(7);
        wait(WINDOW);
        _fails(voidVotes(0, 7), abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
    }

    function test_RevertGiven_TheNumberIsVoided() external {
        request(7);
        voidNumber(7);
        _fails(voidVotes(0, 7), abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
        // A bit that is set stays so, whoever had the keys.
        installAfterTheft();
        _fails(voidVotes(1, 7), abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
    }

    function test_RevertGiven_TheOrderIsSpent() external {
        request(7);
        wait(WINDOW);
        redeem(order(1 ether, 7));
        _fails(voidVotes(0, 7), abi.encodeWithSelector(IFastPay.SequenceSpent.selector, ACCOUNT, 7));
    }

    function test_RevertGiven_TheContractIsPaused() external {
        request(7);
        wait(WINDOW);
        bytes memory paused = pause();
        _fails(voidVotes(0, 7), paused);
    }

    function test_RevertWhen_AQuorumVotesBeforeTheWindowHasPassed() external {
        request(7);
        uint256 voidableFrom = vm.getBlockTimestamp() + WINDOW;
        wait(WINDOW - 1);
        _fails(
            voidVotes(0, 7), abi.encodeWithSelector(ICouncil.NotVoidable.selector, ACCOUNT, 7, voidableFrom)
        );
    }

    function test_RevertWhen_TheVotesOfAQuorumCountOnlyWithThoseOfAll() external {
        request(7);
        wait(WINDOW);
        bytes memory votes = unanimousVotes(0, 7, 3);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.voidSequence(ACCOUNT, 7, false, votes);
    }

    function test_RevertWhen_TheVotesAreOfAnEndedEpoch() external {
        request(7);
        wait(WINDOW);
        bytes memory votes = voidVotes(0, 7);
        rotate();
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.voidSequence(ACCOUNT, 7, false, votes);
    }

    function test_RevertWhen_OneMemberDoesNotVoteWithAllOthers() external {
        request(7);
        bytes memory votes = unanimousVotes(0, 7, 3);
        bytes memory wrong =
            abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, type(uint256).max, 198, 264);
        vm.expectRevert(wrong);
        council.voidSequence(ACCOUNT, 7, true, votes);
        // One that counts without the others is another statement.
        bytes32 digest = council.voidVoteDigest(0, ACCOUNT, 7, false);
        votes = bytes.concat(votes, vote(3, memberKey(3), digest));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.voidSequence(ACCOUNT, 7, true, votes);
    }

    function test_RevertWhen_AllVoteShortlyAfterAnInstallation() external {
        request(7);
        // Also where the votes of the epoch before ended at once.
        installAfterTheft();
        uint256 from = vm.getBlockTimestamp() + 14 days;
        assertEq(council.unanimousFrom(), from);
        wait(14 days - 1);
        bytes memory votes = unanimousVotes(1, 7, 4);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.NotVoidable.selector, ACCOUNT, 7, from));
        council.voidSequence(ACCOUNT, 7, true, votes);
    }

    function test_RevertWhen_TooLittleGasIsLeftForTheBond() external {
        request(7);
        wait(WINDOW);
        bytes memory votes = voidVotes(0, 7);
        vm.expectPartialRevert(IFastPay.InsufficientGas.selector);
        council.voidSequence{gas: 200_000}(ACCOUNT, 7, false, votes);
        assertUnlock(7, Outcome.None, relayer);
    }

    function test_WhenAQuorumVotesAfterTheWindow() external {
        request(7);
        wait(WINDOW);
        _expectVoided(3);
        voidNumber(7);
        _assertVoided(address(0));
        assertEq(relayer.balance, BOND);
        assertEq(address(council).balance, 0);
        redeemFails(order(1 ether, 7), abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 7));
    }

    function test_WhenAllVoteInEpoch0() external {
        request(7);
        assertEq(council.unanimousFrom(), 0);
        _expectVoided(3);
        council.voidSequence(ACCOUNT, 7, true, unanimousVotes(0, 7, 4));
        _assertVoided(address(0));
    }

    function test_WhenAllVoteLongAfterAnInstallation() external {
        installAfterTheft();
        request(7);
        wait(14 days);
        _expectVoided(4);
        council.voidSequence(ACCOUNT, 7, true, unanimousVotes(1, 7, 4));
        _assertVoided(address(0));
    }

    function test_GivenThePayerRefusesTheBond() external {
        address payer = refuser();
        requestFrom(payer, 7);
        _expectVoided(3);
        council.voidSequence(ACCOUNT, 7, true, unanimousVotes(0, 7, 4));
        _assertVoided(payer);
        assertEq(address(council).balance, BOND);
    }

    function test_GivenAnOrderWasUpheldWithStolenKeys() external {
        request(7);
        request(8);
        uphold(7);
        installAfterTheft();
        wait(WINDOW);
        _expectVoided(6);
        voidNumber(7);
        _assertVoided(address(0));
        assertEq(relayer.balance, 0);
        assertEq(address(council).balance, BOND); // that of the other number
    }

    function _assertVoided(address payer) private view {
        assertUnlock(7, Outcome.Voided, payer);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 7));
    }

    function _expectVoided(uint64 index) private {
        vm.expectEmit(address(fastPay));
        emit IFastPay.SequenceVoided(index, ACCOUNT, 7);
    }

    function _fails(bytes memory votes, bytes memory revertData) private {
        vm.expectRevert(revertData);
        council.voidSequence(ACCOUNT, 7, false, votes);
    }
}
