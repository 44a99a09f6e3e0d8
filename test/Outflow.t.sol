// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {
    CertifiedRedemption,
    IFastPay,
    Redemption,
    SafetyParameters
} from "../contracts/interfaces/IFastPay.sol";
import {Payouts} from "../contracts/libraries/Payouts.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {MoodyRecipient} from "./mocks/Recipients.sol";
import {CallbackToken, MoodyToken} from "./tokens/WeirdTokens.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

/// @title The outflow limit, and redemptions that wait because of it
contract OutflowTest is FastPayTest {
    uint256 private constant WINDOW = 1 days;
    uint256 private constant DELAY = 3 days;
    uint128 private constant HELD = 1000 ether;

    /// @dev A tenth of an asset may leave in a day.
    function setUp() public override {
        super.setUp();
        _deploy(1000);
    }

    // ----------------------------------------------------------------------------------- the limit

    function test_AShareLeavesAtOnceAndNoMore() public {
        assertEq(fastPay.outflowAvailable(ETHER), 100 ether);
        redeem(redemption(ETHER, 100 ether, 0, 0));
        assertEq(bob.balance, 100 ether);
        assertEq(fastPay.outflowAvailable(ETHER), 0);
        redeem(redemption(ETHER, 1, 0, 1));
        assertEq(bob.balance, 100 ether);
        assertEq(fastPay.totalQueued(ETHER), 1);
    }

    function test_OneUnitMoreThanTheShareWaits() public {
        redeem(redemption(ETHER, 100 ether + 1, 0, 0));
        assertEq(bob.balance, 0);
        // The bucket and the balance are left alone: what is within the limit still passes.
        assertEq(fastPay.outflowAvailable(ETHER), 100 ether);
        redeem(redemption(ETHER, 100 ether, 0, 1));
        assertEq(bob.balance, 100 ether);
    }

    function test_TheBucketFillsWithTime() public {
        redeem(redemption(ETHER, 100 ether, 0, 0));
        skip(WINDOW / 2);
        assertEq(fastPay.outflowAvailable(ETHER), 45 ether); // half of a tenth of 900
        redeem(redemption(ETHER, 45 ether, 0, 1));
        assertEq(bob.balance, 145 ether);
        assertEq(fastPay.outflowAvailable(ETHER), 0);
        skip(10 * WINDOW); // and no further than full
        assertEq(fastPay.outflowAvailable(ETHER), 85.5 ether);
    }

    function test_AssetsHaveBucketsOfTheirOwn() public {
        fundToken(token, 1000);
        redeem(redemption(ETHER, 100 ether, 0, 0));
        assertEq(fastPay.outflowAvailable(address(token)), 100);
        redeem(redemption(address(token), 100, 0, 1));
        assertEq(token.balanceOf(bob), 100);
    }

    function test_AShareOfAllLetsAllLeave() public {
        _deploy(10_000);
        assertEq(fastPay.outflowAvailable(ETHER), HELD);
        redeem(redemption(ETHER, HELD, 0, 0));
        assertEq(bob.balance, HELD);
        // What comes in after that may leave again.
        fundEther(1 ether);
        assertEq(fastPay.outflowAvailable(ETHER), 1 ether);
        redeem(redemption(ETHER, 1 ether, 0, 1));
        assertEq(bob.balance, HELD + 1 ether);
    }

    function test_ADepositMakesRoomForItself() public {
        redeem(redemption(ETHER, 100 ether, 0, 0));
        assertEq(fastPay.outflowAvailable(ETHER), 0);
        fundEther(50 ether);
        assertApproxEqRel(fastPay.outflowAvailable(ETHER), 50 ether, 1e10);
        assertLe(fastPay.outflowAvailable(ETHER), 50 ether);
        fundEther(9050 ether); // until the bucket is full
        assertEq(fastPay.outflowAvailable(ETHER), 1000 ether);
    }

    /// @dev Whatever is brought in and taken out again, in one transaction or over time, leaves no more room than there
    /// was: else stolen keys could empty the contract with borrowed money.
    function testFuzz_AmountsThatComeAndGoMakeNoRoom(uint256 seed, uint16 share) public {
        share = uint16(bound(share, 100, 10_000));
        _deploy(share);
        uint256 most = fastPay.outflowAvailable(ETHER);
        redeem(redemption(ETHER, uint128(bound(seed, 1, most)), 0, 0));
        uint256 available = fastPay.outflowAvailable(ETHER);
        uint256 held = fastPay.totalBalance(ETHER);
        for (uint64 i = 1; i < 10; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint128 amount = uint128(bound(seed, 1, seed % 2 == 0 ? 10 * HELD : HELD / 100));
            fundEther(amount);
            uint256 within = fastPay.outflowAvailable(ETHER);
            assertLe(within, available + amount, "more room than came in");
            redeem(redemption(ETHER, uint128(amount < within ? amount : within), 0, i));
            if (amount > within) {
                // The rest stays, so that the share is one of more.
                held += amount - within;
                most = held * share / 10_000;
                assertEq(fastPay.outflowAvailable(ETHER), 0);
            }
            assertLe(fastPay.outflowAvailable(ETHER), available, "room from nothing");
            available = fastPay.outflowAvailable(ETHER);
        }
    }

    /// @dev With a hundredth of what is held, brought in and taken out all day, nobody keeps the limit used up.
    function test_NobodyKeepsTheBucketEmpty() public {
        for (uint64 i = 0; i < 300; ++i) {
            fundEther(10 ether);
            vm.warp(vm.getBlockTimestamp() + 15 minutes);
            redeem(redemption(ETHER, 10 ether, 0, i));
            assertGt(fastPay.outflowAvailable(ETHER), 85 ether);
        }
    }

    function test_NothingHeldIsNothingAvailable() public {
        assertEq(fastPay.outflowAvailable(makeAddr("an asset")), 0);
    }

    function test_OneUnitOfOneUnitWaitsAndIsPaid() public {
        MoodyToken dust = new MoodyToken();
        dust.mint(alice, 1);
        fundToken(dust, 1);
        assertEq(fastPay.outflowAvailable(address(dust)), 0);
        Redemption memory order = redemption(address(dust), 1, 0, 0);
        redeem(order);
        assertHolding(address(dust), 1, 0);
        skip(DELAY);
        fastPay.executeQueued(order, "");
        assertEq(dust.balanceOf(bob), 1);
    }

    function test_TheLargestAmounts() public {
        _deploy(10_000);
        MoodyToken large = new MoodyToken();
        large.mint(alice, CAP);
        fundToken(large, CAP);
        assertEq(fastPay.outflowAvailable(address(large)), CAP);
        redeem(redemption(address(large), CAP - 1, 0, 0));
        assertEq(large.balanceOf(bob), CAP - 1);
        redeem(redemption(address(large), 1, 0, 1)); // rounded up, for the bucket has nothing left
        assertEq(large.balanceOf(bob), CAP - 1);
        assertEq(fastPay.totalQueued(address(large)), 1);
    }

    /// @dev What the view says passes, passes; one unit more waits.
    function testFuzz_TheViewIsExact(uint128 held, uint16 share, uint128 first, uint32 elapsed) public {
        held = uint128(bound(held, 1, CAP));
        _deploy(uint16(bound(share, 100, 10_000)));
        address asset = address(_fundToken(held));
        first = uint128(bound(first, 1, held));
        redeem(redemption(asset, first, 0, 0));
        skip(bound(elapsed, 0, 2 * WINDOW));

        uint256 available = fastPay.outflowAvailable(asset);
        uint256 balance = fastPay.totalBalance(asset);
        assertLe(available, balance);
        uint256 queued = fastPay.totalQueued(asset);
        uint256 state = vm.snapshotState();
        if (available > 0) {
            redeem(redemption(asset, uint128(available), 0, 1));
            assertEq(fastPay.totalQueued(asset), queued);
            vm.revertToState(state);
        }
        if (available < balance) {
            redeem(redemption(asset, uint128(available + 1), 0, 1));
            assertEq(fastPay.totalQueued(asset), queued + available + 1);
        }
    }

    /// @dev Never more than the share of the first balance within one window, and never more than twice within two,
    /// however it is cut into pieces.
    function testFuzz_NoMoreThanTheShareLeavesAtOnce(uint256 seed, uint128 held, uint16 share) public {
        held = uint128(bound(held, 1, CAP));
        share = uint16(bound(share, 100, 10_000));
        _deploy(share);
        address asset = address(_fundToken(held));
        uint256 most = uint256(held) * share / 10_000;
        uint256 balance = held;
        for (uint64 i = 0; i < 12 && balance > 0; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint128 amount = uint128(bound(seed >> 128, 1, seed % 2 == 0 ? balance : 1 + most / 3));
            if (amount > balance) amount = uint128(balance);
            redeem(redemption(asset, amount, 0, i));
            balance = held - MoodyToken(asset).balanceOf(bob);
            assertEq(fastPay.totalBalance(asset), balance);
        }
        assertLe(MoodyToken(asset).balanceOf(bob), most);
    }

    // ----------------------------------------------------------------------------- what waits, and how

    function test_AQueuedRedemptionIsSpentAndKept() public {
        Redemption memory order = redemption(ETHER, 500 ether, 2 ether, 7);
        uint256 executableAt = block.timestamp + DELAY;
        expectQueued(order, 2, executableAt);
        redeem(order);
        assertEq(bob.balance + relayer.balance, 0);
        assertHolding(ETHER, HELD, 0);
        assertEq(fastPay.totalQueued(ETHER), 500 ether);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 7));
        (uint256 time, address by,,) = fastPay.queued(ACCOUNT, 7);
        assertEq(time, executableAt);
        assertEq(by, relayer);
        (time, by,,) = fastPay.queued(ACCOUNT, 8);
        assertEq(time, 0);
        assertEq(by, address(0));

        redeemFails(order, abi.encodeWithSelector(IFastPay.AlreadyRedeemed.selector, ACCOUNT, 7));
        redeemFails(
            redemption(ETHER, HELD + 1, 0, 8),
            abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 0, ETHER, HELD, HELD + 1)
        );
    }

    function test_AnyoneExecutesItWhenItsTimeHasCome() public {
        Redemption memory order = redemption(ETHER, 500 ether, 2 ether, 7);
        redeem(order);
        (uint256 executableAt,,,) = fastPay.queued(ACCOUNT, 7);
        vm.warp(executableAt - 1);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.TooEarly.selector, executableAt));
        fastPay.executeQueued(order, "");

        vm.warp(executableAt);
        expectRedeemed(order, 3);
        vm.prank(alice);
        fastPay.executeQueued(order, "");
        assertEq(bob.balance, 498 ether);
        assertEq(relayer.balance, 2 ether); // who brought it, not who executed it
        assertEq(alice.balance, 0);
        assertHolding(ETHER, 500 ether, 0);
        assertEq(fastPay.totalQueued(ETHER), 0);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 7));
        (uint256 time, address by,,) = fastPay.queued(ACCOUNT, 7);
        assertEq(time, 0);
        assertEq(by, address(0));
        _notQueued(order);
    }

    function test_RevertIf_AnotherRedemptionIsGiven() public {
        Redemption memory order = redemption(ETHER, 500 ether, 2 ether, 7);
        redeem(order);
        skip(DELAY);
        bytes memory encoded = abi.encode(order);
        for (uint256 word = 0; word < 7; ++word) {
            bytes memory altered = bytes.concat(encoded);
            altered[word * 32 + 31] ^= 0x01;
            _notQueued(abi.decode(altered, (Redemption)));
        }
        _notQueued(redemption(ETHER, 1, 0, 9));
        fastPay.executeQueued(order, "");
    }

    function test_RevertIf_AFieldDoesNotFitItsType() public {
        Redemption memory order = redemption(ETHER, 500 ether, 2 ether, 7);
        redeem(order);
        skip(DELAY);
        bytes memory data = abi.encodeCall(IFastPay.executeQueued, (order, ""));
        for (uint256 word = 1; word <= 5; ++word) {
            bytes memory dirty = bytes.concat(data);
            dirty[4 + word * 32] = 0x01;
            (bool refused,) = address(fastPay).call(dirty);
            assertFalse(refused, vm.toString(word));
        }
    }

    function test_APauseOnlyDelaysIt() public {
        Redemption memory order = redemption(ETHER, 500 ether, 0, 7);
        redeem(order);
        skip(DELAY - 100);
        vm.prank(guardian);
        fastPay.pause();
        skip(200);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PausedUntil.selector, fastPay.pausedUntil()));
        fastPay.executeQueued(order, "");
        vm.warp(fastPay.pausedUntil());
        fastPay.executeQueued(order, "");
        assertEq(bob.balance, 500 ether);
    }

    function test_ARotationDoesNotTouchIt() public {
        Redemption memory order = redemption(ETHER, 500 ether, 0, 7);
        redeem(order);
        rotate(authoritiesFrom(10, 4), guardian);
        rotate(authoritiesFrom(20, 4), guardian);
        skip(100 days);
        fastPay.executeQueued(order, "");
        assertEq(bob.balance, 500 ether);
    }

    function test_WhatIsRefusedAtTheEndBecomesAClaim() public {
        Redemption memory order = redemption(ETHER, 500 ether, 2 ether, 7);
        MoodyRecipient recipient = new MoodyRecipient(MoodyRecipient.Mood.BurnsGas);
        order.recipient = address(recipient);
        redeem(order);
        skip(DELAY);
        vm.expectEmit(address(fastPay));
        emit IFastPay.ClaimCreated(address(recipient), ETHER, 498 ether);
        fastPay.executeQueued(order, "");
        assertEq(relayer.balance, 2 ether);
        assertHolding(ETHER, 500 ether, 498 ether);
        recipient.claim(fastPay, ETHER, bob, 498 ether);
        assertEq(bob.balance, 498 ether);
    }

    /// @dev Whatever gas the caller sends, the call reverts, or it pays: never a claim.
    function testFuzz_NoGasTurnsItIntoAClaim(uint256 gas) public {
        Redemption memory order = redemption(ETHER, 500 ether, 2 ether, 7);
        redeem(order);
        skip(DELAY);
        try fastPay.executeQueued{gas: bound(gas, 20_000, 400_000)}(order, "") {
            assertEq(bob.balance, 498 ether);
        } catch {
            assertEq(fastPay.totalQueued(ETHER), 500 ether);
        }
        assertEq(fastPay.totalClaims(ETHER), 0);
    }

    function test_RevertIf_TooLittleGasIsLeftToExecute() public {
        Redemption memory order = redemption(ETHER, 500 ether, 0, 7);
        redeem(order);
        skip(DELAY);
        vm.expectPartialRevert(IFastPay.InsufficientGas.selector);
        fastPay.executeQueued{gas: Payouts.CALL_GAS + Payouts.ETHER_GAS}(order, "");
    }

    function test_ATokenThatCallsBackCannotExecuteItTwice() public {
        CallbackToken caller = new CallbackToken();
        caller.mint(alice, 1000);
        fundToken(IERC20(address(caller)), 1000);
        Redemption memory order = redemption(address(caller), 500, 0, 7);
        redeem(order);
        skip(DELAY);
        caller.setCallback(address(fastPay), abi.encodeCall(IFastPay.executeQueued, (order, "")));
        fastPay.executeQueued(order, "");
        assertTrue(caller.called());
        assertFalse(caller.succeeded());
        assertEq(bytes4(caller.answer()), ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        assertEq(caller.balanceOf(bob), 500);
        assertHolding(address(caller), 500, 0);
    }

    function test_ItemsOfABundleAndOfABatchWait() public {
        CertifiedRedemption[] memory many = new CertifiedRedemption[](2);
        many[0] = certified(redemption(ETHER, 50 ether, 1 ether, 0));
        many[1] = certified(redemption(ETHER, 300 ether, 1 ether, 1));
        vm.prank(relayer);
        fastPay.redeemMany(many);
        assertEq(bob.balance, 49 ether);
        assertEq(fastPay.totalQueued(ETHER), 300 ether);

        Redemption[] memory batch = new Redemption[](3);
        batch[0] = many[1].redemption; // waits already
        batch[1] = redemption(ETHER, 200 ether, 1 ether, 2);
        batch[2] = redemption(ETHER, 1 ether, 0, 3);
        bytes memory votes = votesOf(0, 3, fastPay.redemptionBatchVoteDigest(0, batch));
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 1);
        vm.prank(relayer);
        fastPay.redeemBatch(batch, 0, votes);
        assertEq(bob.balance, 50 ether);
        assertEq(fastPay.totalQueued(ETHER), 500 ether);
        assertHolding(ETHER, HELD - 51 ether, 0);

        skip(DELAY);
        fastPay.executeQueued(batch[0], "");
        fastPay.executeQueued(batch[1], "");
        assertEq(bob.balance, 548 ether);
        assertEq(fastPay.totalQueued(ETHER), 0);
    }

    // ------------------------------------------------------------------------------------- private

    function _deploy(uint16 share) private {
        SafetyParameters memory parameters = defaultParameters();
        parameters.outflowShare = share;
        fastPay = deploy(4, parameters);
        fundEther(HELD);
    }

    function _fundToken(uint128 amount) private returns (MoodyToken asset) {
        asset = new MoodyToken();
        asset.mint(alice, amount);
        fundToken(asset, amount);
    }

    function _notQueued(Redemption memory order) private {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NotQueued.selector, order.sender, order.sequence));
        fastPay.executeQueued(order, "");
    }
}
