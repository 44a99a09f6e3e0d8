// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, Outcome, Upholding} from "../../contracts/interfaces/ICouncil.sol";
import {CouncilTest} from "./CouncilTest.sol";

/// @title What the tests of unlocking share: requests, and votes about numbers
abstract contract UnlockTest is CouncilTest {
    uint256 internal constant BOND = 0.005 ether;
    uint256 internal constant WINDOW = 7 days;
    uint256 internal constant OWNER_KEY = 0xa11ce;
    bytes32 internal constant DIGEST = keccak256("an order");

    /// @dev An Ethereum account, and who owns it.
    address internal owner = vm.addr(OWNER_KEY);
    bytes32 internal ownAccount = bytes32(uint256(uint160(owner)));

    /// @dev Asks about a number of the Ed25519 account, as the relayer.
    function request(uint64 sequence) internal {
        requestFrom(relayer, sequence);
    }

    function requestFrom(address payer, uint64 sequence) internal {
        vm.deal(payer, payer.balance + BOND);
        vm.prank(payer);
        council.requestUnlock{value: BOND}(ACCOUNT, sequence, "signed");
    }

    function signedRequest(bytes32 account, uint64 sequence) internal view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(OWNER_KEY, council.unlockRequestDigest(account, sequence));
        return abi.encodePacked(r, s, v);
    }

    /// @dev Of a quorum of an epoch, that the order is certified.
    function certificateVotes(uint64 epoch, uint64 sequence, bytes32 digest)
        internal
        view
        returns (bytes memory)
    {
        return votesIn(epoch, council.certificateVoteDigest(epoch, ACCOUNT, sequence, digest));
    }

    /// @dev Of a quorum of an epoch, that no order is certified.
    function voidVotes(uint64 epoch, uint64 sequence) internal view returns (bytes memory) {
        return votesIn(epoch, council.voidVoteDigest(epoch, ACCOUNT, sequence, false));
    }

    /// @dev Of all members of an epoch, or of so many.
    function unanimousVotes(uint64 epoch, uint64 sequence, uint8 members)
        internal
        view
        returns (bytes memory votes)
    {
        bytes32 digest = council.voidVoteDigest(epoch, ACCOUNT, sequence, true);
        for (uint8 member = 0; member < members; ++member) {
            votes = bytes.concat(votes, vote(member, memberKey(100 * epoch + member), digest));
        }
    }

    function uphold(uint64 sequence) internal {
        uint64 epoch = fastPay.epoch();
        bytes memory votes = certificateVotes(epoch, sequence, DIGEST);
        vm.prank(bob);
        council.upholdSequence(ACCOUNT, sequence, DIGEST, votes);
    }

    function upholding(uint64 sequence, bytes memory votes) internal pure returns (Upholding memory) {
        return Upholding({account: ACCOUNT, sequence: sequence, digest: DIGEST, votes: votes});
    }

    /// @dev Once the window has passed.
    function voidNumber(uint64 sequence) internal {
        (, uint256 voidableFrom,) = council.unlockOf(ACCOUNT, sequence);
        if (vm.getBlockTimestamp() < voidableFrom) vm.warp(voidableFrom);
        bytes memory votes = voidVotes(fastPay.epoch(), sequence);
        vm.prank(bob);
        council.voidSequence(ACCOUNT, sequence, false, votes);
    }

    /// @dev Installs a committee that says that keys of all epochs so far were out.
    function installAfterTheft() internal {
        Announcement memory next = announcementOfNext();
        next.compromisedSince = 0;
        installEndorsed(next);
    }

    function assertUnlock(uint64 sequence, Outcome outcome, address payer) internal view {
        (Outcome found,, address foundPayer) = council.unlockOf(ACCOUNT, sequence);
        assertTrue(found == outcome, "outcome");
        assertEq(foundPayer, payer, "payer");
    }
}
