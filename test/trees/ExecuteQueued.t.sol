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
        wait(2 days);
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
        wait(2 days);
        Redemption memory other = _waiting;
        other.recipient = alice;
        _fails(other, abi.encodeWithSelector(IFastPay.NotQueued.selector, ACCOUNT, 0));
    }

    function test_RevertWhen_ItsTimeHasNotCome() external {
        uint256 executableAt = vm.getBlockTimestamp() + 2 days;
        vm.warp(executableAt - 1);
        _fails(_waiting, abi.encodeWithSelector(IFastPay.TooEarly.selector, executableAt));
    }

    function test_RevertWhen_TooLittleGasIsLeftForThePayout() external {
        wait(2 days);
        vm.expectPartialRevert(IFastPay.InsufficientGas.selector);
        fastPay.executeQueued{gas: 150_000}(_waiting);
    }

    function test_WhenTheRecipientRefuses() external {
        Redemption memory item = order(2 * LIMIT, 1);
        item.recipient = refuser();
        redeem(item);
        wait(2 days);
        fastPay.executeQueued(item);
        assertEq(fastPay.claimOf(item.recipient, ETHER), item.amount - item.fee);
        assertHolding(ETHER, HELD - 4 * LIMIT, item.amount - item.fee);
    }

    function test_RevertWhen_ItWasExecutedBefore() external {
        wait(2 days);
        fastPay.executeQueued(_waiting);
        _fails(_waiting, abi.encodeWithSelector(IFastPay.NotQueued.selector, ACCOUNT, 0));
        redeemFails(_waiting, abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 0));
    }

    function test_WhenItsTimeHasCome() external {
        wait(2 days);
        uint256 available = fastPay.outflowAvailable(ETHER);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Redeemed(ACCOUNT, 0, bob, ETHER, 2 * LIMIT, _waiting.fee, relayer);
        vm.prank(alice);
        fastPay.executeQueued(_waiting);
        assertEq(fastPay.totalQueued(ETHER), 0);
        assertHolding(ETHER, HELD - 2 * LIMIT, 0);
        assertEq(bob.balance, 2 * LIMIT - _waiting.fee);
        assertEq(relayer.balance, _waiting.fee);
        assertEq(fastPay.outflowAvailable(ETHER), available);
    }

    function _fails(Redemption memory item, bytes memory revertData) private {
        vm.expectRevert(revertData);
        fastPay.executeQueued(item);
    }
}
