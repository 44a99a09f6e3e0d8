// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil, Outcome} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {UnlockTest} from "./UnlockTest.sol";

contract UpholdSequenceTreeTest is UnlockTest {
    function test_RevertGiven_NobodyHasRequestedTheUnlock() external {
        bytes memory votes = certificateVotes(0, 7, DIGEST);
        _fails(votes, abi.encodeWithSelector(ICouncil.NotRequested.selector, ACCOUNT, 7));
    }

    function test_RevertGiven_TheNumberIsUpheld() external {
        request(7);
        uphold(7);
        bytes memory votes = certificateVotes(0, 7, DIGEST);
        _fails(votes, abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
        // Also in an epoch later, if no keys were out.
        rotate();
        votes = certificateVotes(1, 7, DIGEST);
        _fails(votes, abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
    }

    function test_RevertGiven_TheNumberIsVoided() external {
        request(7);
        voidNumber(7);
        bytes memory votes = certificateVotes(0, 7, DIGEST);
        _fails(votes, abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
    }

    function test_RevertWhen_TheVotesAreNoQuorum() external {
        request(7);
        bytes32 digest = council.certificateVoteDigest(0, ACCOUNT, 7, DIGEST);
        for (uint256 count = 0; count <= 4; ++count) {
            if (count == 3) continue;
            bytes memory wrong = abi.encodeWithSelector(
                IFastPay.WrongVotesLength.selector, type(uint256).max, count * 66, 198
            );
            _fails(votesOf(0, count, digest), wrong);
        }
    }

    function test_RevertWhen_TheVotesAreForSomethingElse() external {
        request(7);
        bytes32[5] memory others = [
            council.certificateVoteDigest(0, ACCOUNT, 7, keccak256("another order")),
            council.certificateVoteDigest(0, ACCOUNT, 8, DIGEST),
            council.certificateVoteDigest(0, ownAccount, 7, DIGEST),
            council.certificateVoteDigest(1, ACCOUNT, 7, DIGEST),
            council.voidVoteDigest(0, ACCOUNT, 7, false)
        ];
        for (uint256 i = 0; i < others.length; ++i) {
            bytes memory votes = votesIn(0, others[i]);
            vm.expectPartialRevert(IFastPay.WrongSigner.selector);
            council.upholdSequence(ACCOUNT, 7, DIGEST, votes);
        }
    }

    function test_RevertWhen_TheVotesAreOfAnEndedEpoch() external {
        request(7);
        bytes memory votes = certificateVotes(0, 7, DIGEST);
        rotate();
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        council.upholdSequence(ACCOUNT, 7, DIGEST, votes);
    }

    function test_RevertWhen_TheCallerRefusesTheBond() external {
        request(7);
        bytes memory votes = certificateVotes(0, 7, DIGEST);
        address caller = refuser();
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.BondRefused.selector, caller));
        council.upholdSequence(ACCOUNT, 7, DIGEST, votes);
        assertUnlock(7, Outcome.None, relayer);
    }

    function test_WhenTheVotesAreAQuorum() external {
        request(7);
        _expectUpheld(3);
        uphold(7);
        assertUnlock(7, Outcome.Upheld, address(0));
        assertEq(bob.balance, BOND);
        assertEq(address(council).balance, 0);
        assertFalse(fastPay.isRedeemed(ACCOUNT, 7));
    }

    function test_GivenTheOrderIsSpent() external {
        redeem(order(1 ether, 7));
        request(7);
        _expectUpheld(4);
        uphold(7);
    }

    function test_GivenTheContractIsPaused() external {
        request(7);
        pause();
        _expectUpheld(3);
        uphold(7);
    }

    function test_GivenAnotherOrderWasUpheldWithStolenKeys() external {
        request(7);
        request(8);
        bytes32 madeUp = keccak256("a made-up order");
        bytes memory stolen = certificateVotes(0, 7, madeUp);
        vm.prank(alice);
        council.upholdSequence(ACCOUNT, 7, madeUp, stolen);
        installAfterTheft();
        assertUnlock(7, Outcome.None, address(0));
        _expectUpheld(6);
        uphold(7);
        assertUnlock(7, Outcome.Upheld, address(0));
        assertEq(bob.balance, 0);
        assertEq(address(council).balance, BOND); // that of the other number
    }

    function _expectUpheld(uint64 index) private {
        vm.expectEmit(address(fastPay));
        emit IFastPay.SequenceUpheld(index, ACCOUNT, 7, DIGEST);
    }

    function _fails(bytes memory votes, bytes memory revertData) private {
        vm.expectRevert(revertData);
        council.upholdSequence(ACCOUNT, 7, DIGEST, votes);
    }
}
