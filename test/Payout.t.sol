// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {Payouts} from "../contracts/libraries/Payouts.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {MoodyRecipient} from "./mocks/Recipients.sol";
import {MoodyToken} from "./tokens/WeirdTokens.sol";

/// @title Payouts that do not go through, and the claims that they become
contract PayoutTest is FastPayTest {
    MoodyToken private _moody;

    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
        fundToken(token, 1000);
        _moody = new MoodyToken();
        _moody.mint(alice, 1000);
        fundToken(_moody, 1000);
    }

    // --------------------------------------------------------------------- recipients that refuse

    function test_EtherIsPaidToARecipientThatReturnsMuch() public {
        MoodyRecipient recipient = new MoodyRecipient(MoodyRecipient.Mood.ReturnsMuch);
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        order.recipient = address(recipient);
        redeem(order);
        assertEq(address(recipient).balance, 1 ether);
        // 60 kilobytes, copied, would have cost 6,000 words.
        assertLt(vm.lastCallGas().gasTotalUsed, 90_000);
    }

    function test_ABurnOfGasIsBounded() public {
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        order.recipient = address(new MoodyRecipient(MoodyRecipient.Mood.BurnsGas));
        bytes memory votes = certify(order);
        fastPay.redeem{gas: 10_000_000}(order, 0, votes);
        assertLt(vm.lastCallGas().gasTotalUsed, 170_000 + Payouts.ETHER_GAS);

        order = redemption(address(_moody), 10, 0, 1);
        votes = certify(order);
        _moody.setMood(MoodyToken.Mood.BurnsGas);
        fastPay.redeem{gas: 10_000_000}(order, 0, votes);
        assertLt(vm.lastCallGas().gasTotalUsed, 220_000 + Payouts.TOKEN_GAS);
    }

    function test_APayoutToFastPayItselfBecomesAClaimAndFundsNobody() public {
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        order.recipient = address(fastPay);
        redeem(order);
        assertHolding(ETHER, 9 ether, 1 ether);
        assertEq(fastPay.lastTransactionIndex(), 4); // of the redemption
    }

    function test_ARefusalDoesNotStopABundle() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](3);
        for (uint64 i = 0; i < 3; ++i) {
            Redemption memory order = redemption(ETHER, 1 ether, 0.1 ether, i);
            if (i == 1) order.recipient = address(new MoodyRecipient(MoodyRecipient.Mood.BurnsGas));
            items[i] = certified(order);
        }
        vm.prank(relayer);
        fastPay.redeemMany(items);
        assertEq(bob.balance, 1.8 ether);
        assertEq(relayer.balance, 0.3 ether);
        assertEq(fastPay.claimOf(items[1].redemption.recipient, ETHER), 0.9 ether);
        assertHolding(ETHER, 7 ether, 0.9 ether);
    }

    // ------------------------------------------------------------------------ tokens that refuse

    function test_ATokenThatReturnsTwoBecomesAClaim() public {
        _tokenBecomesAClaim(MoodyToken.Mood.ReturnsTwo);
    }

    function test_ATokenThatReturnsOneByteBecomesAClaim() public {
        _tokenBecomesAClaim(MoodyToken.Mood.ReturnsOneByte);
    }

    /// @dev With an answer that is a byte short of a word, what memory held before must not complete it to `true`.
    function test_ATokenThatReturns31BytesBecomesAClaim() public {
        address endsInOne = address(0x1234567890123456789012345678901234567801);
        vm.etch(endsInOne, address(_moody).code);
        _moody = MoodyToken(endsInOne);
        _moody.mint(alice, 1000);
        fundToken(_moody, 1000);
        _tokenBecomesAClaim(MoodyToken.Mood.Returns31Bytes);
    }

    function test_ATokenThatRevertsAtLengthBecomesAClaim() public {
        _tokenBecomesAClaim(MoodyToken.Mood.RevertsWithMuch);
    }

    // -------------------------------------------------------------------------------------- claims

    /// @dev The cap is for what accounts own, and a claim is no account's any more.
    function test_ClaimsDoNotCountAgainstTheCap() public {
        Redemption memory order = redemption(ETHER, 10 ether, 0, 0);
        order.recipient = address(new MoodyRecipient(MoodyRecipient.Mood.Reverts));
        redeem(order);
        fundEther(ETHER_CAP);
        assertHolding(ETHER, ETHER_CAP, 10 ether);
    }

    // --------------------------------------------------------------------------------- too little gas

    /// @dev The full allowance reaches the recipient at the very least gas with which the call goes through.
    function test_TheRecipientHasItsFullAllowanceAtTheLeastGas() public {
        GasMeter meter = new GasMeter();
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        order.recipient = address(meter);
        bytes memory votes = certify(order);
        uint256 state = vm.snapshotState();
        (uint256 fails, uint256 goes) = (20_000, 1_000_000);
        while (fails + 1 < goes) {
            uint256 gas = (fails + goes) / 2;
            try fastPay.redeem{gas: gas}(order, 0, votes) {
                goes = gas;
                assertGe(meter.gasAtReceipt(), Payouts.ETHER_GAS, "less than promised");
            } catch {
                fails = gas;
            }
            vm.revertToState(state);
        }
        fastPay.redeem{gas: goes}(order, 0, votes);
        assertGe(meter.gasAtReceipt(), Payouts.ETHER_GAS);
        assertEq(address(meter).balance, 1 ether);
    }

    // ------------------------------------------------------------------------------------- private

    function _tokenBecomesAClaim(MoodyToken.Mood mood) private {
        address asset = address(_moody);
        _moody.setMood(mood);
        vm.expectEmit(address(fastPay));
        emit IFastPay.ClaimCreated(bob, asset, 7);
        vm.expectEmit(address(fastPay));
        emit IFastPay.ClaimCreated(relayer, asset, 3);
        redeem(redemption(asset, 10, 3, 0));
        assertEq(_moody.balanceOf(bob), 0);
        assertHolding(asset, 990, 10);

        vm.expectRevert(abi.encodeWithSelector(IFastPay.ClaimRefused.selector, bob, asset, 7));
        vm.prank(bob);
        fastPay.claim{gas: 1_000_000}(asset, bob, 7);

        _moody.setMood(MoodyToken.Mood.Good);
        vm.prank(bob);
        fastPay.claim(asset, bob, 7);
        fastPay.claimFor(relayer, asset, 3);
        assertEq(_moody.balanceOf(bob), 7);
        assertEq(_moody.balanceOf(relayer), 3);
        assertHolding(asset, 990, 0);
    }
}

/// @title Remembers how much gas came with its ETH
contract GasMeter {
    uint256 public gasAtReceipt;

    receive() external payable {
        gasAtReceipt = gasleft();
    }
}
