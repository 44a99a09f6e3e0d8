// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil, Outcome, Upholding} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {UnlockTest} from "./UnlockTest.sol";

contract UpholdManyTreeTest is UnlockTest {
    function test_RevertGiven_NobodyHasRequestedTheUnlockOfOne() external {
        request(1);
        Upholding[] memory items = _items(2);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.NotRequested.selector, ACCOUNT, 2));
        council.upholdMany(items);
    }

    function test_RevertWhen_TheVotesForOneAreNoQuorum() external {
        request(1);
        request(2);
        Upholding[] memory items = _items(2);
        items[1].votes = votesOf(0, 2, council.certificateVoteDigest(0, ACCOUNT, 2, DIGEST));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 1, 132, 198));
        council.upholdMany(items);
    }

    function test_WhenThereIsNone() external {
        council.upholdMany(new Upholding[](0));
        assertEq(fastPay.lastTransactionIndex(), 1);
    }

    function test_GivenOneHasItsOutcome() external {
        for (uint64 i = 1; i <= 3; ++i) {
            request(i);
        }
        Upholding[] memory items = _items(3);
        uphold(2); // somebody was faster
        items[2] = items[0]; // and one is there twice
        vm.prank(alice);
        council.upholdMany(items);
        assertEq(alice.balance, BOND);
        assertUnlock(1, Outcome.Upheld, address(0));
        assertUnlock(3, Outcome.None, relayer);
        assertEq(fastPay.lastTransactionIndex(), 6);
    }

    function test_WhenAllHaveTheVotesOfAQuorum() external {
        for (uint64 i = 1; i <= 3; ++i) {
            request(i);
        }
        Upholding[] memory items = _items(3);
        for (uint64 i = 1; i <= 3; ++i) {
            vm.expectEmit(address(fastPay));
            emit IFastPay.SequenceUpheld(4 + i, ACCOUNT, i, DIGEST);
        }
        vm.prank(alice);
        council.upholdMany(items);
        assertEq(alice.balance, 3 * BOND);
        assertEq(address(council).balance, 0);
    }

    /// @dev The numbers 1 to `count`.
    function _items(uint64 count) private view returns (Upholding[] memory items) {
        items = new Upholding[](count);
        for (uint64 i = 0; i < count; ++i) {
            items[i] = upholding(i + 1, certificateVotes(0, i + 1, DIGEST));
        }
    }
}
