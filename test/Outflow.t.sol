// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption, SafetyParameters} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {MoodyToken} from "./tokens/WeirdTokens.sol";

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
}
