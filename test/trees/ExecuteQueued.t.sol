// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "./TreeTest.sol";

contract ExecuteQueuedTreeTest is TreeTest {
    Redemption private _waiting;

    function setUp() public override {
        super.setUp();
        _waiting = enqueue(0);
    }

    function test_RevertGiven_TheContractIsPaused() external {
        wait(3 days);
        _fails(_waiting, pause());
    }

    function test_RevertGiven_NothingWaitsUnderTheNumber() external {
        redeem(order(1 ether, 1));
        for (uint64 sequence = 1; sequence < 3; ++sequence) {
            _fails(
                order(1 ether, sequence),
                abi.encodeWithSelector(IFastPay.NotQueued.selector, ACCOUNT, sequence)
            );
        }
    }

    function test_RevertGiven_AnotherRedemptionWaitsUnderTheNumber() external {
        wait(3 days);
        Redemption memory other = _waiting;
        other.recipient = alice;
        _fails(other, abi.encodeWithSelector(IFastPay.NotQueued.selector, ACCOUNT, 0));
    }

    function test_RevertWhen_ItsTimeHasNotCome() external {
        uint256 executableAt = vm.getBlockTimestamp() + 3 days;
        vm.warp(executableAt - 1);
        _fails(_waiting, abi.encodeWithSelector(IFastPay.TooEarly.selector, executableAt));
    }

    function test_RevertGiven_ItIsPostponed() external {
        vm.prank(guardian);
        fastPay.postpone(0, 10 days);
        uint256 executableAt = vm.getBlockTimestamp() + 13 days;
        vm.warp(executableAt - 1);
        _fails(_waiting, abi.encodeWithSelector(IFastPay.TooEarly.selector, executableAt));
        vm.warp(executableAt);
        fastPay.executeQueued(_waiting, "");
    }

    function test_RevertGiven_TheBalanceDoesNotCoverIt() external {
        Redemption memory all = order(HELD, 1);
        redeem(all);
        wait(3 days);
        fastPay.executeQueued(_waiting, "");
        _fails(all, abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 0, ETHER, HELD - 2 * LIMIT, HELD));
        (,,, bool needsVotes) = fastPay.queued(ACCOUNT, 1);
        assertFalse(needsVotes);
        fundEther(2 * LIMIT);
        fastPay.executeQueued(all, "");
        assertHolding(ETHER, 0, 0);
    }

    function test_RevertWhen_ThereAreNoVotes() external {
        _compromise();
        _fails(_waiting, abi.encodeWithSelector(IFastPay.EpochCompromised.selector, 0));
    }

    function test_RevertWhen_TheVotesAreNoQuorumOfTheCurrentEpoch() external {
        _compromise();
        bytes memory old = batchVotes(0, _batch());
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.executeQueued(_waiting, old);
        bytes memory toRelease = votesIn(1, fastPay.releaseVoteDigest(1, _waiting));
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.executeQueued(_waiting, toRelease);
    }

    function test_WhenAQuorumOfTheCurrentEpochVotes() external {
        _compromise();
        (,,, bool needsVotes) = fastPay.queued(ACCOUNT, 0);
        assertTrue(needsVotes);
        fastPay.executeQueued(_waiting, batchVotes(1, _batch()));
        assertEq(bob.balance, 2 * LIMIT - _waiting.fee);
        assertEq(relayer.balance, _waiting.fee);
    }

    function test_RevertWhen_TooLittleGasIsLeftForThePayout() external {
        wait(3 days);
        vm.expectPartialRevert(IFastPay.InsufficientGas.selector);
        fastPay.executeQueued{gas: 200_000}(_waiting, "");
    }

    function test_WhenTheRecipientRefuses() external {
        Redemption memory item = order(2 * LIMIT, 1);
        item.recipient = refuser();
        redeem(item);
        wait(3 days);
        fastPay.executeQueued(item, "");
        assertEq(fastPay.claimOf(item.recipient, ETHER), item.amount - item.fee);
        assertHolding(ETHER, HELD - 2 * LIMIT, item.amount - item.fee);
    }

    function test_RevertWhen_ItWasExecutedBefore() external {
        wait(3 days);
        fastPay.executeQueued(_waiting, "");
        _fails(_waiting, abi.encodeWithSelector(IFastPay.NotQueued.selector, ACCOUNT, 0));
        redeemFails(_waiting, abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 0));
    }

    function test_WhenItsTimeHasCome() external {
        wait(3 days);
        uint256 available = fastPay.outflowAvailable(ETHER);
        expectRedeemed(_waiting, 3);
        vm.prank(alice);
        fastPay.executeQueued(_waiting, "");
        assertEq(fastPay.totalQueued(ETHER), 0);
        assertHolding(ETHER, HELD - 2 * LIMIT, 0);
        assertEq(bob.balance, 2 * LIMIT - _waiting.fee);
        assertEq(relayer.balance, _waiting.fee);
        // The same part of the bucket is left, of what is held now.
        assertEq(fastPay.outflowAvailable(ETHER), available * 8 / 10);
    }

    function _batch() private view returns (Redemption[] memory items) {
        items = new Redemption[](1);
        items[0] = _waiting;
    }

    function _compromise() private {
        vm.prank(address(fastPay.council()));
        fastPay.install(committeeOf(1), guardian, 0, 0);
        wait(3 days);
    }

    function _fails(Redemption memory item, bytes memory revertData) private {
        vm.expectRevert(revertData);
        fastPay.executeQueued(item, "");
    }
}
