// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {CostlyRecipient} from "../mocks/Recipients.sol";
import {HostileTest} from "./HostileTest.sol";

/// @title Too little gas, on every way out
/// @notice A call forwards at most 63/64 of what is left. Whoever chooses the gas must not be able to choose that a
/// payout fails: with any amount of it, each way out either pays everybody or reverts, and never leaves a claim.
contract HostileGasTest is HostileTest {
    uint256 private constant STEP = 7919; // a prime, so that runs over many limits meet many places

    address private _costly; // takes nearly all that a recipient may spend

    function setUp() public override {
        super.setUp();
        _costly = address(new CostlyRecipient());
    }

    function test_NoGasMakesAClaimOfARedemption() public {
        _sweep(_redeem(_order(ETHER, 1 ether, 0)), 900_000);
        _sweep(_redeem(_order(address(token), 1 ether, 1)), 1_500_000);
        _sweep(_redeem(order(1 ether, 2)), 900_000); // to an account that does not exist yet
    }

    function test_NoGasMakesAClaimOfABundle() public {
        CertifiedRedemption[] memory items = new CertifiedRedemption[](3);
        items[0] = certifiedIn(0, _order(ETHER, 1 ether, 0));
        items[1] = certifiedIn(0, _order(address(token), 1 ether, 1));
        items[2] = certifiedIn(0, _order(ETHER, 1 ether, 2));
        _sweep(abi.encodeCall(IFastPay.redeemMany, (items)), 1_900_000);
    }

    function test_NoGasMakesAClaimOfABatch() public {
        Redemption[] memory items = new Redemption[](3);
        items[0] = _order(ETHER, 1 ether, 0);
        items[1] = _order(address(token), 1 ether, 1);
        items[2] = _order(ETHER, 1 ether, 2);
        _sweep(abi.encodeCall(IFastPay.redeemBatch, (items, 0, batchVotes(0, items))), 1_900_000);
    }

    function test_NoGasMakesAClaimOfWhatWaited() public {
        Redemption memory first = _order(ETHER, 2 * LIMIT, 0);
        Redemption memory second = _order(address(token), 2 * LIMIT, 1);
        redeem(first);
        redeem(second);
        wait(3 days);
        _sweep(abi.encodeCall(IFastPay.executeQueued, (first, "")), 900_000);
        _sweep(abi.encodeCall(IFastPay.executeQueued, (second, "")), 1_500_000);
    }

    /// @dev A claim that cannot be paid stays what it is.
    function test_NoGasLosesAClaim() public {
        Redemption memory item = order(1 ether, 0);
        item.recipient = refuser();
        redeem(item);
        uint256 owed = fastPay.claimOf(item.recipient, ETHER);
        bytes memory call = abi.encodeCall(IFastPay.claim, (ETHER, _costly, owed));
        for (uint256 gas = 21_000; gas < 300_000; gas += STEP) {
            uint256 state = vm.snapshotState();
            vm.prank(item.recipient);
            (bool paid,) = address(fastPay).call{gas: gas}(call);
            assertEq(fastPay.claimOf(item.recipient, ETHER), paid ? 0 : owed);
            assertEq(_costly.balance, paid ? owed : 0);
            vm.revertToState(state);
        }
    }

    /// @dev Calls with every amount of gas up to `most`, in steps. At some it must go through, at some not.
    function _sweep(bytes memory call, uint256 most) private {
        (uint256 paid, uint256 reverted) = (0, 0);
        for (uint256 gas = 21_000 + vm.randomUint(0, STEP); gas < most; gas += STEP) {
            uint256 state = vm.snapshotState();
            uint256 owed = _owed();
            vm.prank(relayer);
            (bool success,) = address(fastPay).call{gas: gas}(call);
            assertEq(fastPay.totalClaims(ETHER) + fastPay.totalClaims(address(token)), 0, "a claim");
            if (success) {
                ++paid;
                assertLt(_owed(), owed);
            } else {
                ++reverted;
                assertEq(_owed(), owed);
            }
            vm.revertToState(state);
        }
        assertGt(paid, 0, "never enough");
        assertGt(reverted, 0, "always enough");
    }

    function _owed() private view returns (uint256 owed) {
        owed = fastPay.totalBalance(ETHER) + fastPay.totalBalance(address(token));
    }

    function _order(address asset, uint128 amount, uint64 sequence)
        private
        view
        returns (Redemption memory item)
    {
        item = orderOf(asset, amount, sequence);
        item.recipient = _costly;
    }

    function _redeem(Redemption memory item) private view returns (bytes memory) {
        return abi.encodeCall(IFastPay.redeem, (item, 0, certifyIn(0, item)));
    }
}
