// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyToken} from "../tokens/WeirdTokens.sol";
import {TreeTest} from "./TreeTest.sol";

contract RedeemTreeTest is TreeTest {
    MoodyToken private _moody;

    function test_RevertGiven_TheContractIsPaused() external {
        redeemFails(order(1 ether, 0), pause());
    }

    function test_RevertGiven_TheOrderIsSpent() external {
        redeem(order(1 ether, 0));
        enqueue(1);
        for (uint64 sequence = 0; sequence < 2; ++sequence) {
            redeemFails(
                order(1 ether, sequence),
                abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, sequence)
            );
        }
    }

    function test_RevertWhen_TheEpochHasNoCommittee() external {
        _fails(1, certifyIn(0, order(1 ether, 0)), abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));
    }

    function test_RevertWhen_TheEpochIsBeforeThePreviousOne() external {
        rotate();
        rotate();
        bytes memory votes = certifyIn(0, order(1 ether, 0));
        _fails(0, votes, abi.encodeWithSelector(IFastPay.EpochEnded.selector, 0, 0));
    }

    function test_RevertWhen_TheEpochIsThePreviousOneAndItsTimeIsOver() external {
        rotate();
        uint256 end = fastPay.epochValidUntil(0);
        vm.warp(end + 1);
        bytes memory votes = certifyIn(0, order(1 ether, 0));
        _fails(0, votes, abi.encodeWithSelector(IFastPay.EpochEnded.selector, 0, end));
    }

    function test_WhenTheEpochIsThePreviousOneWithinItsTime() external {
        rotate();
        vm.warp(fastPay.epochValidUntil(0));
        redeem(order(1 ether, 0));
        assertEq(bob.balance, 0.9 ether);
    }

    function test_RevertWhen_TheVotesHaveAnotherLengthThanAQuorumHas() external {
        bytes memory votes = certifyIn(0, order(1 ether, 0));
        _fails(0, "", abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 0, 0, 198));
        _fails(
            0,
            bytes.concat(votes, hex"00"),
            abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 0, 199, 198)
        );
    }

    function test_RevertWhen_TheMembersDoNotAscend() external {
        bytes memory votes = certifyIn(0, order(1 ether, 0));
        votes[66] = 0;
        _fails(0, votes, abi.encodeWithSelector(IFastPay.VotesNotAscending.selector, 0, 1, 0));
    }

    function test_RevertWhen_AMemberDoesNotExist() external {
        bytes memory votes = certifyIn(0, order(1 ether, 0));
        votes[132] = 0x04;
        _fails(0, votes, abi.encodeWithSelector(IFastPay.UnknownMember.selector, 0, 2, 4));
    }

    function test_RevertWhen_AVoteHasAHighS() external {
        bytes memory votes = certifyIn(0, order(1 ether, 0));
        votes[33] |= 0x80; // of the first vote; one byte decides
        bytes32 s;
        assembly {
            s := mload(add(votes, 65))
        }
        _fails(0, votes, abi.encodeWithSelector(IFastPay.MalleableVote.selector, 0, 0, s));
    }

    function test_RevertWhen_AVoteHasAWrongV() external {
        bytes memory votes = certifyIn(0, order(1 ether, 0));
        votes[65] = 0x01;
        _fails(0, votes, abi.encodeWithSelector(IFastPay.InvalidRecoveryId.selector, 0, 0, 1));
    }

    function test_RevertWhen_AVoteIsNotByItsMember() external {
        bytes memory votes = certifyIn(0, order(1 ether, 0));
        votes[132] = 0x03;
        address signer = vm.addr(memberKey(2));
        _fails(0, votes, abi.encodeWithSelector(IFastPay.WrongSigner.selector, 0, 2, 3, signer));
    }

    function test_RevertWhen_TheAmountIsZero() external {
        redeemFails(order(0, 0), abi.encodeWithSelector(IFastPay.ZeroRedemption.selector, 0));
    }

    function test_RevertWhen_TheFeeIsAboveTheAmount() external {
        redeemFails(
            redemption(ETHER, 1, 2, 0), abi.encodeWithSelector(IFastPay.FeeAboveAmount.selector, 0, 2, 1)
        );
    }

    function test_RevertWhen_TheAssetHasLessThanTheAmount() external {
        redeemFails(
            order(HELD + 1, 0),
            abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 0, ETHER, HELD, HELD + 1)
        );
        assertFalse(fastPay.isRedeemed(ACCOUNT, 0));
    }

    function test_WhenTheAmountIsAboveTheOutflowLimit() external {
        Redemption memory item = order(LIMIT + 1, 0);
        expectQueued(item, 2, vm.getBlockTimestamp() + 3 days);
        redeem(item);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 0));
        assertHolding(ETHER, HELD, 0);
        assertEq(fastPay.totalQueued(ETHER), LIMIT + 1);
        assertEq(fastPay.outflowAvailable(ETHER), LIMIT);
        assertEq(fastPay.lastTransactionIndex(), 2);
        assertEq(bob.balance + relayer.balance, 0);
    }

    function test_RevertWhen_TooLittleGasIsLeftForThePayout() external {
        Redemption memory item = order(1 ether, 0);
        bytes memory votes = certifyIn(0, item);
        vm.expectPartialRevert(IFastPay.InsufficientGas.selector);
        fastPay.redeem{gas: 200_000}(item, 0, votes);
    }

    function test_WhenTheRecipientRefuses() external {
        Redemption memory item = order(1 ether, 0);
        item.recipient = refuser();
        vm.expectEmit(address(fastPay));
        emit IFastPay.ClaimCreated(item.recipient, ETHER, 0.9 ether);
        redeem(item);
        assertEq(fastPay.claimOf(item.recipient, ETHER), 0.9 ether);
        assertEq(relayer.balance, 0.1 ether);
        assertHolding(ETHER, HELD - 1 ether, 0.9 ether);
    }

    function test_WhenTheRelayerRefusesItsFee() external {
        Redemption memory item = order(1 ether, 0);
        address refusing = refuser();
        bytes memory votes = certifyIn(0, item);
        vm.prank(refusing);
        fastPay.redeem(item, 0, votes);
        assertEq(fastPay.claimOf(refusing, ETHER), 0.1 ether);
        assertEq(bob.balance, 0.9 ether);
        assertHolding(ETHER, HELD - 1 ether, 0.1 ether);
    }

    function test_WhenTheTokenAnswersTrue() external {
        _redeemToken(MoodyToken.Mood.Good);
        _assertTokenPaid(900, 100);
    }

    function test_WhenTheTokenAnswersNothing() external {
        _redeemToken(MoodyToken.Mood.ReturnsNothing);
        _assertTokenPaid(900, 100);
    }

    function test_WhenTheTokenAnswersFalse() external {
        _redeemToken(MoodyToken.Mood.ReturnsFalse);
        _assertTokenPaid(0, 0);
    }

    function test_WhenTheTokenIsGone() external {
        _prepareToken();
        bytes memory code = address(_moody).code;
        vm.etch(address(_moody), "");
        redeem(redemption(address(_moody), 1000, 100, 0));
        vm.etch(address(_moody), code);
        _assertTokenPaid(0, 0);
    }

    function test_WhenBothAccept() external {
        expectRedeemed(order(LIMIT, 0), 2);
        redeem(order(LIMIT, 0));
        assertTrue(fastPay.isRedeemed(ACCOUNT, 0));
        assertHolding(ETHER, HELD - LIMIT, 0);
        assertEq(fastPay.outflowAvailable(ETHER), 0);
        assertEq(bob.balance, LIMIT - LIMIT / 10);
        assertEq(relayer.balance, LIMIT / 10);
    }

    function _prepareToken() private {
        _moody = new MoodyToken();
        _moody.mint(alice, 100_000);
        fundToken(_moody, 100_000);
    }

    function _redeemToken(MoodyToken.Mood mood) private {
        _prepareToken();
        _moody.setMood(mood);
        redeem(redemption(address(_moody), 1000, 100, 0));
    }

    /// @dev What the recipient and the relayer of 900 and 100 got; the rest of it they can claim.
    function _assertTokenPaid(uint256 toRecipient, uint256 toRelayer) private view {
        assertEq(_moody.balanceOf(bob), toRecipient);
        assertEq(_moody.balanceOf(relayer), toRelayer);
        assertEq(fastPay.claimOf(bob, address(_moody)), 900 - toRecipient);
        assertEq(fastPay.claimOf(relayer, address(_moody)), 100 - toRelayer);
        assertHolding(address(_moody), 99_000, 1000 - toRecipient - toRelayer);
    }

    function _fails(uint64 epoch, bytes memory votes, bytes memory revertData) private {
        vm.expectRevert(revertData);
        fastPay.redeem(order(1 ether, 0), epoch, votes);
    }
}
