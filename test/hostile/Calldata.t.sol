// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {Committees} from "../../contracts/libraries/Committees.sol";
import {HostileTest} from "./HostileTest.sol";

/// @title Bytes that are no call, or nearly one
/// @notice Every external function gets calldata that is cut short, points beyond its end, or has bits set where a type
/// has none. The only calls that may go through are those that mean what was signed.
contract HostileCalldataTest is HostileTest {
    // -------------------------------------------------------------------------------- calls, as bytes

    function testFuzz_NoiseChangesNothing(uint256 which, bytes calldata noise) public {
        bytes4 selector = bytes4(_call(which));
        bytes32 before = _state();
        (bool success,) = address(fastPay).call(bytes.concat(selector, noise));
        // `redeemMany` of nothing is the one call that needs nothing.
        if (success) assertEq(selector, IFastPay.redeemMany.selector);
        assertEq(_state(), before);
    }

    function testFuzz_UnknownSelectorsRevert(bytes4 selector, bytes calldata noise) public {
        bytes[] memory calls = callsOfEachFunction(1);
        for (uint256 i = 0; i < calls.length; ++i) {
            vm.assume(calls[i].length < 4 || bytes4(calls[i]) != selector);
        }
        bytes32 before = _state();
        // A view may well answer; nothing may change.
        (bool success,) = address(fastPay).call(bytes.concat(selector, noise));
        success;
        assertEq(_state(), before);
    }

    /// @dev All arguments of the functions that take votes are needed to the last byte.
    function testFuzz_RevertIf_TheCallIsCutShort(uint256 which, uint256 kept) public {
        bytes memory data = _call(3 + which % 3);
        kept = bound(kept, 4, data.length - 1);
        // The padding of the last argument is not read; everything before it is.
        uint256 padding = (32 - (3 * 66) % 32) % 32;
        vm.assume(kept < data.length - padding);
        assembly {
            mstore(data, kept)
        }
        _fails(data);
    }

    /// @dev A word of a call that redeems, altered anywhere, redeems nothing else: at most it makes a bundle empty.
    function testFuzz_NothingIsRedeemedIf_AWordIsAltered(uint256 which, uint256 place, uint256 word) public {
        bytes memory data = _call(3 + which % 3);
        place = 4 + 32 * bound(place, 0, (data.length - 4) / 32 - 1);
        bytes32 old;
        assembly {
            old := mload(add(add(data, 0x20), place))
        }
        vm.assume(word != uint256(old));
        assembly {
            mstore(add(add(data, 0x20), place), word)
        }
        uint256 padding = (32 - (3 * 66) % 32) % 32;
        vm.assume(
            place + 32 <= data.length - padding || uint256(old) >> (8 * padding) != word >> (8 * padding)
        );
        bytes32 before = _state();
        (bool success,) = address(fastPay).call(data);
        assertEq(_state(), before);
        if (success) assertEq(bytes4(data), IFastPay.redeemMany.selector);
    }

    /// @dev Offsets and lengths near 2^256 must not wrap around into something valid.
    function testFuzz_RevertIf_AnOffsetOrALengthIsHuge(uint256 which, uint256 place, uint8 bits) public {
        bytes memory data = _call(3 + which % 3);
        uint256 head = 4 + 32 * bound(place, 0, 11);
        uint256 huge = type(uint256).max - uint256(bits);
        assembly {
            mstore(add(add(data, 0x20), head), huge)
        }
        _fails(data);
    }

    /// @dev Bits above a type's own are an error, not something to ignore: two encodings would mean one order.
    function testFuzz_RevertIf_UpperBitsAreDirty(uint256 field, uint256 bit) public {
        bytes memory data = _call(3);
        // Redemption: sender, recipient, asset, amount, fee, sequence, memo; then the epoch.
        uint8[6] memory fields = [1, 2, 3, 4, 5, 7];
        uint8[6] memory width = [160, 160, 128, 128, 64, 64];
        field = bound(field, 0, 5);
        uint256 dirt = 1 << bound(bit, width[field], 255);
        uint256 place = 4 + 32 * uint256(fields[field]);
        assembly {
            let at_ := add(add(data, 0x20), place)
            mstore(at_, or(mload(at_), dirt))
        }
        _fails(data);
    }

    function test_RevertIf_AddressesOfDepositsAndClaimsAreDirty() public {
        fundEther(1);
        uint256 dirty = uint256(uint160(address(token))) | (1 << 160);
        _fails(abi.encodeWithSelector(IFastPay.depositToken.selector, ACCOUNT, dirty, 1));
        _fails(
            abi.encodeWithSelector(IFastPay.depositToken.selector, ACCOUNT, address(token), uint256(1) << 128)
        );
        _fails(abi.encodeWithSelector(IFastPay.claim.selector, dirty, bob, 1));
        _fails(abi.encodeWithSelector(IFastPay.claim.selector, address(token), dirty, 1));
        _fails(abi.encodeWithSelector(IFastPay.claimFor.selector, dirty, address(token), 1));
        _fails(
            abi.encodeWithSelector(
                IFastPay.depositTokenWithPermit.selector,
                ACCOUNT,
                address(token),
                1,
                0,
                uint256(27) | 256,
                0,
                0
            )
        );
    }

    function test_RevertIf_EtherComesWithACallThatTakesNone() public {
        bytes[] memory calls = callsOfEachFunction(1);
        vm.deal(address(this), 100);
        for (uint256 i = 1; i < 12; ++i) {
            (bool success,) = address(fastPay).call{value: 1}(calls[i]);
            assertFalse(success, vm.toString(i));
        }
    }

    // ------------------------------------------------------------------------------------------ votes

    /// @dev Reads what the contract reads, in another way, and says who of the committee signed.
    function testFuzz_VotesAreAQuorumOrNothing(bytes calldata noise, uint256 place, uint8 value) public {
        Redemption memory item = order(1 ether, 0);
        bytes memory votes = certifyIn(0, item);
        votes[bound(place, 0, votes.length - 1)] = bytes1(value);
        if (noise.length > 0 && noise[0] == 0x00) votes = bytes.concat(votes, noise);
        bool valid = _isQuorum(votes, fastPay.redemptionVoteDigest(0, item));
        (bool success,) = address(fastPay).call(abi.encodeCall(IFastPay.redeem, (item, 0, votes)));
        assertEq(success, valid);
    }

    function _isQuorum(bytes memory votes, bytes32 digest) private view returns (bool) {
        if (votes.length != 3 * 66) return false;
        Authority[] memory members = fastPay.committee(0);
        int256 last = -1;
        for (uint256 i = 0; i < 3; ++i) {
            uint256 member = uint8(votes[66 * i]);
            (uint256 r, uint256 s) = (0, 0);
            for (uint256 j = 1; j <= 32; ++j) {
                r = (r << 8) | uint8(votes[66 * i + j]);
                s = (s << 8) | uint8(votes[66 * i + 32 + j]);
            }
            uint8 v = uint8(votes[66 * i + 65]);
            if (int256(member) <= last || member >= members.length) return false;
            if (s >= 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a1) return false;
            if (v != 27 && v != 28) return false;
            if (ecrecover(digest, v, bytes32(r), bytes32(s)) != members[member].redemptionKey) return false;
            last = int256(member);
        }
        return true;
    }

    // ------------------------------------------------------------------- committees, as the chain has them

    /// @dev Written and read back, for any size and any keys.
    /// forge-config: default.fuzz.runs = 24
    function testFuzz_CommitteesAreReadAsTheyWereWritten(uint256 size, uint256 seed) public {
        size = bound(size, 4, 255);
        Authority[] memory next = new Authority[](size);
        uint256 votingKey = uint256(keccak256(abi.encode(seed))) >> 16;
        for (uint256 i = 0; i < size; ++i) {
            votingKey += 1 + (uint256(keccak256(abi.encode(seed, i))) >> 8 >> (seed % 200));
            address key = address(uint160(uint256(keccak256(abi.encode(seed, "key", i)))));
            next[i] = Authority({votingKey: bytes32(votingKey), redemptionKey: key});
        }
        rotate(next, guardian);
        assertEq(abi.encode(fastPay.committee(1)), abi.encode(next));
        assertEq(fastPay.quorum(1), Committees.quorum(size));
        assertEq(abi.encode(fastPay.committee(0)), abi.encode(committeeOf(0)));
    }

    /// @dev Past 127, 255 and 65,535 committees the address rule has longer numbers.
    function testFuzz_EachCommitteeIsWhereItsNumberPutsIt(uint64 epoch) public view {
        epoch = epoch >> (epoch % 64);
        vm.assume(epoch < type(uint64).max - 1);
        address code = Committees.codeOf(address(fastPay), epoch);
        assertEq(code, vm.computeCreateAddress(address(fastPay), uint256(epoch) + 1));
    }

    // ---------------------------------------------------------------------------------------- private

    function _call(uint256 which) private view returns (bytes memory) {
        return callsOfEachFunction(1)[which % 12];
    }

    function _fails(bytes memory data) private {
        bytes32 before = _state();
        (bool success,) = address(fastPay).call(data);
        assertFalse(success);
        assertEq(_state(), before);
    }

    function _state() private view returns (bytes32) {
        return keccak256(
            abi.encode(
                fastPay.totalBalance(ETHER),
                fastPay.totalClaims(ETHER),
                fastPay.totalQueued(ETHER),
                address(fastPay).balance,
                fastPay.totalBalance(address(token)),
                fastPay.redeemedBitmap(ACCOUNT, 0),
                fastPay.epoch(),
                fastPay.guardian(),
                fastPay.pausedUntil(),
                fastPay.lastTransactionIndex()
            )
        );
    }
}
