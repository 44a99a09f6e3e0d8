// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
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

    // ---------------------------------------------------------------------------- what is signed

    function test_TheDigestIsThatOfEIP712() public view {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256(
                    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
                ),
                keccak256("FastPay"),
                keccak256("1"),
                block.chainid,
                address(fastPay)
            )
        );
        string memory orderType = string.concat(
            "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,",
            "uint128 fee,uint64 sequence,bytes32 memo)"
        );
        bytes32 order = keccak256(
            abi.encode(
                keccak256(bytes(orderType)),
                _order.sender,
                _order.recipient,
                _order.asset,
                _order.amount,
                _order.fee,
                _order.sequence,
                _order.memo
            )
        );
        bytes32 voteHash = keccak256(
            abi.encode(
                keccak256(
                    bytes.concat("RedemptionVote(uint64 epoch,Redemption redemption)", bytes(orderType))
                ),
                uint64(5),
                order
            )
        );
        assertEq(
            fastPay.redemptionVoteDigest(5, _order), keccak256(abi.encodePacked(hex"1901", domain, voteHash))
        );
    }

    // ------------------------------------------------------------------------------- any quorum

    function test_AnyThreeOfFourAreAQuorum() public {
        uint8[3][4] memory quorums = [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]];
        for (uint64 i = 0; i < quorums.length; ++i) {
            _order.sequence = i;
            bytes32 digest = fastPay.redemptionVoteDigest(0, _order);
            fastPay.redeem(_order, 0, _votes(quorums[i], digest));
            assertTrue(fastPay.isRedeemed(ACCOUNT, i));
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

    function test_RevertIf_NoVotes() public {
        _fails("", abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 0, 0, 198));
    }

    function test_RevertIf_AVoteIsMissing() public {
        _fails(
            votesOf(0, 2, _digest), abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 0, 132, 198)
        );
    }

    function test_RevertIf_AVoteTooMany() public {
        _fails(
            votesOf(0, 4, _digest), abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 0, 264, 198)
        );
    }

    function test_RevertIf_AByteIsMissingOrTooMany() public {
        bytes memory votes = votesOf(0, 3, _digest);
        _fails(
            bytes.concat(votes, hex"00"),
            abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 0, 199, 198)
        );
        assembly {
            mstore(votes, 197)
        }
        _fails(votes, abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, 0, 197, 198));
    }

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

    function test_RevertIf_AMemberDoesNotExist() public {
        _fails(_votes([0, 1, 4], _digest), abi.encodeWithSelector(IFastPay.UnknownMember.selector, 0, 2, 4));
        _fails(
            _votes([0, 1, 255], _digest), abi.encodeWithSelector(IFastPay.UnknownMember.selector, 0, 2, 255)
        );
    }

    function test_RevertIf_ANonMemberSigns() public {
        (address outsider, uint256 key) = makeAddrAndKey("outsider");
        bytes memory votes = bytes.concat(votesOf(0, 2, _digest), vote(2, key, _digest));
        _fails(votes, abi.encodeWithSelector(IFastPay.WrongSigner.selector, 0, 2, 2, outsider));
    }

    function test_RevertIf_AMemberSignsInAnothersName() public {
        bytes memory votes = bytes.concat(votesOf(0, 2, _digest), vote(3, memberKey(1), _digest));
        _fails(votes, abi.encodeWithSelector(IFastPay.WrongSigner.selector, 0, 2, 3, vm.addr(memberKey(1))));
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

    function testFuzz_RevertIf_VotesAreNoise(bytes calldata noise) public {
        vm.expectRevert();
        fastPay.redeem(_order, 0, noise);
    }

    function testFuzz_RevertIf_CalldataIsNoise(bytes calldata noise, bool many) public {
        bytes4 selector = many ? IFastPay.redeemMany.selector : IFastPay.redeem.selector;
        (bool success,) = address(fastPay).call(bytes.concat(selector, noise));
        if (success) assertTrue(many); // an empty list, however it is spelt
        assertEq(fastPay.totalBalance(ETHER), 10 ether);
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

    function test_RevertIf_TheEpochIsAnother() public {
        bytes32 other = fastPay.redemptionVoteDigest(1, _order);
        _failsPartially(votesOf(0, 3, other), IFastPay.WrongSigner.selector);

        bytes memory votes = votesOf(0, 3, _digest);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));
        fastPay.redeem(_order, 1, votes);
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
