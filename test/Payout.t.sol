// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {Payouts} from "../contracts/libraries/Payouts.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {CostlyRecipient, MoodyRecipient} from "./mocks/Recipients.sol";
import {CallbackToken, FeeToken, MoodyToken} from "./tokens/WeirdTokens.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

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

    function test_EtherThatIsRefusedBecomesAClaim() public {
        _etherBecomesAClaim(MoodyRecipient.Mood.Reverts);
    }

    function test_EtherThatBurnsItsGasBecomesAClaim() public {
        _etherBecomesAClaim(MoodyRecipient.Mood.BurnsGas);
    }

    function test_EtherThatIsRefusedAtLengthBecomesAClaim() public {
        _etherBecomesAClaim(MoodyRecipient.Mood.RevertsWithMuch);
    }

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

    function test_ASmartWalletIsPaid() public {
        CostlyRecipient recipient = new CostlyRecipient();
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        order.recipient = address(recipient);
        redeem(order);
        assertEq(recipient.receipts(), 1);
        assertEq(address(recipient).balance, 1 ether);
        assertEq(fastPay.totalClaims(ETHER), 0);
    }

    function test_AFeeThatIsRefusedBecomesTheRelayersClaim() public {
        MoodyRecipient refuser = new MoodyRecipient(MoodyRecipient.Mood.Reverts);
        Redemption memory order = redemption(ETHER, 1 ether, 0.1 ether, 0);
        bytes memory votes = certify(order);
        vm.expectEmit(address(fastPay));
        emit IFastPay.ClaimCreated(address(refuser), ETHER, 0.1 ether);
        vm.prank(address(refuser));
        fastPay.redeem(order, 0, votes);
        assertEq(bob.balance, 0.9 ether);
        assertEq(fastPay.claimOf(address(refuser), ETHER), 0.1 ether);
        assertHolding(ETHER, 9 ether, 0.1 ether);
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

    function test_PaysATokenThatReturnsNothing() public {
        _moody.setMood(MoodyToken.Mood.ReturnsNothing);
        redeem(redemption(address(_moody), 10, 3, 0));
        assertEq(_moody.balanceOf(bob), 7);
        assertEq(_moody.balanceOf(relayer), 3);
        assertHolding(address(_moody), 990, 0);
    }

    function test_PaysATokenThatReturnsTrueAndMuchMore() public {
        _moody.setMood(MoodyToken.Mood.ReturnsMuch);
        redeem(redemption(address(_moody), 10, 0, 0));
        assertEq(_moody.balanceOf(bob), 10);
        assertHolding(address(_moody), 990, 0);
    }

    function test_ATokenThatReturnsFalseBecomesAClaim() public {
        _tokenBecomesAClaim(MoodyToken.Mood.ReturnsFalse);
    }

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

    function test_ATokenThatRevertsBecomesAClaim() public {
        _tokenBecomesAClaim(MoodyToken.Mood.Reverts);
    }

    function test_ATokenThatRevertsAtLengthBecomesAClaim() public {
        _tokenBecomesAClaim(MoodyToken.Mood.RevertsWithMuch);
    }

    function test_ATokenThatBurnsItsGasBecomesAClaim() public {
        _tokenBecomesAClaim(MoodyToken.Mood.BurnsGas);
    }

    function test_ATokenThatIsGoneBecomesAClaim() public {
        bytes memory code = address(_moody).code;
        vm.etch(address(_moody), "");
        redeem(redemption(address(_moody), 10, 0, 0));
        assertEq(fastPay.claimOf(bob, address(_moody)), 10);

        vm.expectRevert(abi.encodeWithSelector(IFastPay.ClaimRefused.selector, bob, address(_moody), 10));
        vm.prank(bob);
        fastPay.claim(address(_moody), bob, 10);

        vm.etch(address(_moody), code); // and it is back
        vm.prank(bob);
        fastPay.claim(address(_moody), bob, 10);
        assertEq(_moody.balanceOf(bob), 10);
    }

    function test_ATokenThatTakesAFeeIsPaid() public {
        FeeToken fee = new FeeToken();
        fee.mint(alice, 1000);
        fundToken(fee, 1000);
        assertHolding(address(fee), 990, 0);
        redeem(redemption(address(fee), 900, 0, 0));
        assertEq(fee.balanceOf(bob), 891);
        assertHolding(address(fee), 90, 0);
    }

    function test_ATokenThatLostItsMoneyHarmsNoOther() public {
        vm.prank(address(fastPay)); // as a rebase or a theft inside the token would
        _moody.transfer(alice, 995);
        redeem(redemption(address(_moody), 10, 0, 0));
        assertEq(fastPay.claimOf(bob, address(_moody)), 10);
        redeem(redemption(address(_moody), 5, 0, 1));
        assertEq(_moody.balanceOf(bob), 5);
        redeem(redemption(ETHER, 10 ether, 0, 2));
        redeem(redemption(address(token), 1000, 0, 3));
        assertEq(bob.balance, 10 ether);
        assertEq(token.balanceOf(bob), 1000);
    }

    // -------------------------------------------------------------------------------------- claims

    function test_AClaimIsPaidOnce() public {
        MoodyRecipient recipient = _refused(1 ether);
        recipient.setMood(MoodyRecipient.Mood.Accepts);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Claimed(address(recipient), ETHER, address(recipient), 1 ether);
        recipient.claim(fastPay, ETHER);
        assertEq(address(recipient).balance, 1 ether);
        assertHolding(ETHER, 9 ether, 0);

        vm.expectRevert(abi.encodeWithSelector(IFastPay.NothingToClaim.selector, address(recipient), ETHER));
        recipient.claim(fastPay, ETHER);
    }

    function test_AClaimIsPaidToAnotherAddress() public {
        MoodyRecipient recipient = _refused(1 ether);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Claimed(address(recipient), ETHER, bob, 1 ether);
        recipient.claim(fastPay, ETHER, bob, 1 ether);
        assertEq(bob.balance, 1 ether);
        assertHolding(ETHER, 9 ether, 0);
        assertEq(fastPay.claimOf(address(recipient), ETHER), 0);
    }

    function test_ClaimsAddUp() public {
        MoodyRecipient recipient = _refused(1 ether);
        Redemption memory order = redemption(ETHER, 2 ether, 0, 1);
        order.recipient = address(recipient);
        redeem(order);
        assertEq(fastPay.claimOf(address(recipient), ETHER), 3 ether);
        recipient.claim(fastPay, ETHER, bob, 3 ether);
        assertEq(bob.balance, 3 ether);
    }

    function test_AClaimMayTakeMoreGasThanAPayout() public {
        MoodyRecipient recipient = _refused(1 ether);
        CostlyRecipient twice = new CostlyRecipient();
        // Two receipts in one: well above the bound of a payout.
        recipient.setMood(MoodyRecipient.Mood.Accepts);
        recipient.setCallback(address(twice), "");
        recipient.claim(fastPay, ETHER);
        assertTrue(recipient.called());
        assertEq(address(recipient).balance, 1 ether);
    }

    /// @dev The cap is for what accounts own, and a claim is no account's any more.
    function test_ClaimsDoNotCountAgainstTheCap() public {
        _refused(10 ether);
        fundEther(ETHER_CAP);
        assertHolding(ETHER, ETHER_CAP, 10 ether);
    }

    // --------------------------------------------------------------------------------- too little gas

    /// @dev Whatever gas the caller sends, the call reverts, or it pays: never a claim.
    function testFuzz_NoGasTurnsAPayoutOfEtherIntoAClaim(uint256 gas) public {
        Redemption memory order = redemption(ETHER, 1 ether, 0.1 ether, 0);
        order.recipient = address(new CostlyRecipient());
        _neverAClaim(order, bound(gas, 20_000, 400_000));
    }

    function testFuzz_NoGasTurnsAPayoutToANewAccountIntoAClaim(uint256 gas) public {
        _neverAClaim(redemption(ETHER, 1 ether, 0.1 ether, 0), bound(gas, 20_000, 400_000));
    }

    function testFuzz_NoGasTurnsAPayoutOfATokenIntoAClaim(uint256 gas) public {
        _neverAClaim(redemption(address(token), 100, 1, 0), bound(gas, 20_000, 900_000));
    }

    function testFuzz_NoGasTurnsAPayoutInABundleIntoAClaim(uint256 gas) public {
        gas = bound(gas, 20_000, 700_000);
        CertifiedRedemption[] memory items = new CertifiedRedemption[](3);
        for (uint64 i = 0; i < 3; ++i) {
            Redemption memory order = redemption(ETHER, 1 ether, 0.1 ether, i);
            order.recipient = address(new CostlyRecipient());
            items[i] = certified(order);
        }
        vm.prank(relayer);
        try fastPay.redeemMany{gas: gas}(items) {
            assertEq(relayer.balance, 0.3 ether);
        } catch {
            assertHolding(ETHER, 10 ether, 0);
        }
        assertEq(fastPay.totalClaims(ETHER), 0);
    }

    function test_RevertIf_TooLittleGasIsLeftForThePayout() public {
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        bytes memory votes = certify(order);
        vm.expectPartialRevert(IFastPay.InsufficientGas.selector);
        fastPay.redeem{gas: 200_000}(order, 0, votes);
        fastPay.redeem{gas: 300_000}(order, 0, votes);
        assertEq(bob.balance, 1 ether);
    }

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

    // ------------------------------------------------------------------------------------ re-entry

    function test_ARecipientCannotReEnter() public {
        Redemption memory other = redemption(ETHER, 1 ether, 0, 1);
        CertifiedRedemption[] memory items = new CertifiedRedemption[](1);
        items[0] = certified(other);
        bytes[6] memory calls = [
            abi.encodeCall(IFastPay.redeem, (other, 0, items[0].votes)),
            abi.encodeCall(IFastPay.redeemMany, (items)),
            abi.encodeCall(IFastPay.claim, (ETHER, bob, 1)),
            abi.encodeCall(IFastPay.claimFor, (bob, ETHER, 1)),
            abi.encodeCall(IFastPay.depositToken, (ACCOUNT, token, 1)),
            abi.encodeCall(IFastPay.depositTokenWithPermit, (ACCOUNT, token, 1, 0, 27, 0, 0))
        ];
        MoodyRecipient refused = _refused(1 ether);
        for (uint256 i = 0; i < calls.length; ++i) {
            uint256 state = vm.snapshotState();
            // In a claim, where gas has no bound, so that nothing but the guard can stop it.
            refused.setCallback(address(fastPay), calls[i]);
            refused.claim(fastPay, ETHER);
            assertTrue(refused.called());
            assertFalse(refused.succeeded());
            assertEq(bytes4(refused.answer()), ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
            assertHolding(ETHER, 9 ether, 0);
            vm.revertToState(state);
        }
    }

    function test_ARecipientCannotSendThePayoutBack() public {
        EtherReturner returner = new EtherReturner(fastPay);
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        order.recipient = address(returner);
        redeem(order);
        // Its receipt failed with the deposit, so that it has a claim and the contract still has the ether.
        assertHolding(ETHER, 9 ether, 1 ether);
        assertEq(fastPay.claimOf(address(returner), ETHER), 1 ether);
        assertEq(address(fastPay).balance, 10 ether);
    }

    function test_ATokenThatCallsBackRedeemsOnce() public {
        CallbackToken caller = new CallbackToken();
        caller.mint(alice, 1000);
        fundToken(IERC20(address(caller)), 1000);
        Redemption memory order = redemption(address(caller), 10, 0, 0);
        bytes memory votes = certify(order);
        caller.setCallback(address(fastPay), abi.encodeCall(IFastPay.redeem, (order, 0, votes)));
        fastPay.redeem(order, 0, votes);
        assertTrue(caller.called());
        assertFalse(caller.succeeded());
        assertEq(caller.balanceOf(bob), 10);
        assertHolding(address(caller), 990, 0);
    }

    // ------------------------------------------------------------------------------------- private

    function _refused(uint128 amount) private returns (MoodyRecipient recipient) {
        recipient = new MoodyRecipient(MoodyRecipient.Mood.Reverts);
        Redemption memory order = redemption(ETHER, amount, 0, 0);
        order.recipient = address(recipient);
        redeem(order);
    }

    function _etherBecomesAClaim(MoodyRecipient.Mood mood) private {
        MoodyRecipient recipient = new MoodyRecipient(mood);
        Redemption memory order = redemption(ETHER, 1 ether, 0.1 ether, 0);
        order.recipient = address(recipient);
        expectRedeemed(order, 4);
        vm.expectEmit(address(fastPay));
        emit IFastPay.ClaimCreated(address(recipient), ETHER, 0.9 ether);
        redeem(order);
        assertEq(address(recipient).balance, 0);
        assertEq(relayer.balance, 0.1 ether);
        assertHolding(ETHER, 9 ether, 0.9 ether);

        recipient.claim(fastPay, ETHER, bob, 0.9 ether);
        assertEq(bob.balance, 0.9 ether);
        assertHolding(ETHER, 9 ether, 0);
    }

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

    function _neverAClaim(Redemption memory order, uint256 gas) private {
        bytes memory votes = certify(order);
        vm.prank(relayer);
        try fastPay.redeem{gas: gas}(order, 0, votes) {
            assertTrue(fastPay.isRedeemed(ACCOUNT, 0));
        } catch {
            assertFalse(fastPay.isRedeemed(ACCOUNT, 0));
        }
        assertEq(fastPay.totalClaims(order.asset), 0);
    }
}

/// @title Remembers how much gas came with its ETH
contract GasMeter {
    uint256 public gasAtReceipt;

    receive() external payable {
        gasAtReceipt = gasleft();
    }
}

/// @title Deposits whatever it receives
contract EtherReturner {
    IFastPay private immutable _fastPay;

    constructor(IFastPay fastPay) {
        _fastPay = fastPay;
    }

    receive() external payable {
        _fastPay.depositEther{value: msg.value}(bytes32(uint256(1)));
    }
}
