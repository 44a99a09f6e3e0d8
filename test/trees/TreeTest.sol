// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {
    Authority,
    CertifiedRedemption,
    Redemption,
    SafetyParameters
} from "../../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "../FastPayTest.sol";
import {MoodyRecipient} from "../mocks/Recipients.sol";

/// @title What the tests of the trees share: 100 ETH, of which a tenth may leave in a day, and committees to come
/// @notice Each `.tree` here says what one function does in each case; the contract beside it, of the same name, has
/// one test for each leaf. `bulloak check` sees to it that neither has what the other lacks.
abstract contract TreeTest is FastPayTest {
    uint128 internal constant HELD = 100 ether;
    uint128 internal constant LIMIT = 10 ether;
    /// @dev Where the contract keeps the holdings of tokens.
    uint256 internal constant HOLDINGS_SLOT = 6;

    function setUp() public virtual override {
        super.setUp();
        fastPay = deploy(4, tight());
        fundEther(HELD);
    }

    function tight() internal pure returns (SafetyParameters memory parameters) {
        parameters = defaultParameters();
        parameters.outflowShare = 1000;
    }

    // ----------------------------------------------------------------------------- time and roles

    function pause() internal returns (bytes memory revertData) {
        vm.prank(guardian);
        fastPay.pause();
        return abi.encodeWithSignature("PausedUntil(uint256)", vm.getBlockTimestamp() + 1 days);
    }

    function wait(uint256 time) internal {
        vm.warp(vm.getBlockTimestamp() + time);
    }

    // --------------------------------------------------------------------------------- committees

    /// @dev The members of an epoch: other keys in each.
    function committeeOf(uint64 epoch) internal pure returns (Authority[] memory list) {
        list = authorities(4);
        for (uint256 i = 0; i < list.length; ++i) {
            list[i].redemptionKey = vm.addr(memberKey(100 * epoch + i));
        }
    }

    /// @dev The votes of the first three members of an epoch.
    function votesIn(uint64 epoch, bytes32 digest) internal pure returns (bytes memory votes) {
        for (uint8 member = 0; member < 3; ++member) {
            votes = bytes.concat(votes, vote(member, memberKey(100 * epoch + member), digest));
        }
    }

    /// @dev Begins the next epoch, with the same guardian.
    function rotate() internal {
        rotate(committeeOf(fastPay.epoch() + 1), guardian);
    }

    // -------------------------------------------------------------------------------- redemptions

    /// @dev A redemption of ETH with a tenth of it as fee.
    function order(uint128 amount, uint64 sequence) internal view returns (Redemption memory) {
        return redemption(ETHER, amount, amount / 10, sequence);
    }

    function certifyIn(uint64 epoch, Redemption memory item) internal view returns (bytes memory) {
        return votesIn(epoch, fastPay.redemptionVoteDigest(epoch, item));
    }

    function certifiedIn(uint64 epoch, Redemption memory item)
        internal
        view
        returns (CertifiedRedemption memory)
    {
        return CertifiedRedemption({redemption: item, epoch: epoch, votes: certifyIn(epoch, item)});
    }

    function batchVotes(uint64 epoch, Redemption[] memory items) internal view returns (bytes memory) {
        return votesIn(epoch, fastPay.redemptionBatchVoteDigest(epoch, items));
    }

    /// @dev `count` redemptions of one ether each.
    function orders(uint64 count) internal view returns (Redemption[] memory items) {
        items = new Redemption[](count);
        for (uint64 i = 0; i < count; ++i) {
            items[i] = order(1 ether, i);
        }
    }

    /// @dev A redemption above the limit, brought by the relayer.
    function enqueue(uint64 sequence) internal returns (Redemption memory item) {
        item = order(2 * LIMIT, sequence);
        redeem(item);
    }

    function refuser() internal returns (address) {
        return address(new MoodyRecipient(MoodyRecipient.Mood.Reverts));
    }

    /// @dev Gives a recipient that refused a claim of one ether.
    function claimant(uint64 sequence) internal returns (MoodyRecipient owner) {
        Redemption memory item = redemption(ETHER, 1 ether, 0, sequence);
        item.recipient = refuser();
        redeem(item);
        return MoodyRecipient(payable(item.recipient));
    }
}
