// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {Committees} from "../contracts/libraries/Committees.sol";
import {Votes} from "../contracts/libraries/Votes.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title Which votes are a quorum, and what any others get
contract VotesTest is FastPayTest {
    uint256 private constant ORDER_OF_CURVE =
        0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;

    Redemption private _order;
    bytes32 private _digest;

    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
        _order = redemption(ETHER, 1 ether, 0, 0);
        _digest = fastPay.redemptionVoteDigest(0, _order);
    }

    // ------------------------------------------------------------------------------- any quorum

    function test_AnyTwoQuorumsShareAnHonestMemberAndTheHonestSuffice() public pure {
        for (uint256 n = Committees.SIZE_MIN; n <= Committees.SIZE_MAX; ++n) {
            (uint256 f, uint256 quorum) = ((n - 1) / 3, Committees.quorum(n));
            assertGt(2 * quorum - n, f, vm.toString(n));
            assertLe(quorum, n - f, vm.toString(n));
            if (n == 3 * f + 1) assertEq(quorum, 2 * f + 1);
        }
    }

    function testFuzz_AnyQuorumOfAnyCommittee(uint256 size, uint256 seed) public {
        size = bound(size, 4, 60);
        fastPay = deploy(size);
        fundEther(1 ether);
        bytes32 digest = fastPay.redemptionVoteDigest(0, _order);
        uint256 missing = size - fastPay.quorum(0);
        bytes memory votes;
        for (uint256 member = 0; member < size; ++member) {
            seed = uint256(keccak256(abi.encode(seed)));
            // Leaves out `missing` members, each set with equal chance.
            if (seed % (size - member) < missing) --missing;
            else votes = bytes.concat(votes, vote(uint8(member), memberKey(member), digest));
        }
        fastPay.redeem(_order, 0, votes);
        assertTrue(fastPay.isRedeemed(ACCOUNT, 0));
    }

    // ------------------------------------------------------------------------------ wrong numbers

    function test_RevertIf_SignaturesAreCompact() public {
        // EIP-2098: 64 bytes each.
        bytes memory votes;
        for (uint8 i = 0; i < 3; ++i) {
            (bytes32 r, bytes32 vs) = vm.signCompact(memberKey(i), _digest);
            votes = bytes.concat(votes, abi.encodePacked(i, r, vs));
        }
        _fails(votes, abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 0, 195, 198));
    }

    // ------------------------------------------------------------------------------ wrong members

    function test_RevertIf_AMemberVotesTwice() public {
        _fails(
            _votes([0, 1, 1], _digest), abi.encodeWithSelector(IFastPay.VotesNotAscending.selector, 0, 2, 1)
        );
        _fails(
            _votes([0, 0, 1], _digest), abi.encodeWithSelector(IFastPay.VotesNotAscending.selector, 0, 1, 0)
        );
    }

    function test_RevertIf_VotesAreUnsorted() public {
        _fails(
            _votes([1, 0, 2], _digest), abi.encodeWithSelector(IFastPay.VotesNotAscending.selector, 0, 1, 0)
        );
    }

    function test_RevertIf_ANonMemberSigns() public {
        (address outsider, uint256 key) = makeAddrAndKey("outsider");
        bytes memory votes = bytes.concat(votesOf(0, 2, _digest), vote(2, key, _digest));
        _fails(votes, abi.encodeWithSelector(IFastPay.WrongSigner.selector, 0, 2, 2, outsider));
    }

    // --------------------------------------------------------------------------- wrong signatures

    function test_RevertIf_SIsHigh() public {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(memberKey(1), _digest);
        bytes32 twin = bytes32(ORDER_OF_CURVE - uint256(s));
        bytes memory votes = bytes.concat(
            votesOf(0, 1, _digest),
            abi.encodePacked(uint8(1), r, twin, v == 27 ? 28 : 27),
            votesOf(2, 1, _digest)
        );
        _fails(votes, abi.encodeWithSelector(IFastPay.MalleableVote.selector, 0, 1, twin));
    }

    function test_TheBoundOnSIsHalfTheOrder() public pure {
        assertEq(Votes.S_MAX, ORDER_OF_CURVE / 2);
    }

    function test_RevertIf_VIsNeither27Nor28() public {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(memberKey(2), _digest);
        uint8[6] memory wrong = [0, 1, v - 27, 26, 29, 255];
        for (uint256 i = 0; i < wrong.length; ++i) {
            bytes memory votes =
                bytes.concat(votesOf(0, 2, _digest), abi.encodePacked(uint8(2), r, s, wrong[i]));
            _fails(votes, abi.encodeWithSelector(IFastPay.InvalidRecoveryId.selector, 0, 2, wrong[i]));
        }
    }

    function test_RevertIf_NobodyCanHaveSigned() public {
        // ecrecover answers zero, which is no member.
        bytes memory votes = bytes.concat(
            votesOf(0, 2, _digest), abi.encodePacked(uint8(2), bytes32(0), bytes32(0), uint8(27))
        );
        _fails(votes, abi.encodeWithSelector(IFastPay.WrongSigner.selector, 0, 2, 2, address(0)));
    }

    function testFuzz_RevertIf_AnyByteIsAltered(uint256 place, uint8 change) public {
        bytes memory votes = votesOf(0, 3, _digest);
        place = bound(place, 0, votes.length - 1);
        change = uint8(bound(change, 1, 255));
        votes[place] ^= bytes1(change);
        vm.expectRevert();
        fastPay.redeem(_order, 0, votes);
        assertFalse(fastPay.isRedeemed(ACCOUNT, 0));
    }

    // --------------------------------------------------------------------------- votes for others

    function test_RevertIf_TheRedemptionIsAltered() public {
        bytes memory votes = votesOf(0, 3, _digest);
        Redemption memory good = _order;
        bytes memory encoded = abi.encode(good);
        for (uint256 word = 0; word < 7; ++word) {
            bytes memory altered = bytes.concat(encoded);
            altered[word * 32 + 31] ^= 0x01;
            Redemption memory bad = abi.decode(altered, (Redemption));
            if (bad.amount < bad.fee) continue;
            vm.expectPartialRevert(IFastPay.WrongSigner.selector);
            fastPay.redeem(bad, 0, votes);
        }
        fastPay.redeem(good, 0, votes);
    }

    function test_RevertIf_TheVotesAreForAnotherContract() public {
        bytes32 other = deploy(4).redemptionVoteDigest(0, _order);
        _failsPartially(votesOf(0, 3, other), IFastPay.WrongSigner.selector);
    }

    function test_RevertIf_TheVotesAreForAnotherChain() public {
        vm.chainId(1);
        bytes32 other = fastPay.redemptionVoteDigest(0, _order);
        vm.chainId(31337); // forge's own, and the contract's
        _failsPartially(votesOf(0, 3, other), IFastPay.WrongSigner.selector);
    }

    function test_RevertIf_TheChainForks() public {
        bytes memory votes = votesOf(0, 3, _digest);
        vm.chainId(block.chainid + 1);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.redeem(_order, 0, votes);
    }

    function test_RevertIf_TheSendersOwnDigestIsSigned() public {
        // What the owner of the account signs is not what a member signs: neither can be passed off as the other.
        bytes32 orderHash = vm.eip712HashStruct(
            "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,uint128 fee,uint64 sequence,bytes32 memo)",
            abi.encode(_order)
        );
        _failsPartially(votesOf(0, 3, orderHash), IFastPay.WrongSigner.selector);
    }

    // ------------------------------------------------------------------------------------- private

    function _votes(uint8[3] memory members, bytes32 digest) private pure returns (bytes memory) {
        return bytes.concat(
            vote(members[0], memberKey(members[0]), digest),
            vote(members[1], memberKey(members[1]), digest),
            vote(members[2], memberKey(members[2]), digest)
        );
    }

    function _fails(bytes memory votes, bytes memory revertData) private {
        vm.expectRevert(revertData);
        fastPay.redeem(_order, 0, votes);
    }

    function _failsPartially(bytes memory votes, bytes4 selector) private {
        vm.expectPartialRevert(selector);
        fastPay.redeem(_order, 0, votes);
    }
}
