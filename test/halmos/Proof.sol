// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../../contracts/interfaces/ICouncil.sol";
import {
    AssetCap,
    Authority,
    IFastPay,
    Redemption,
    SafetyParameters
} from "../../contracts/interfaces/IFastPay.sol";
import {Vm} from "forge-std/Vm.sol";

/// @dev What Halmos adds to Foundry's cheat codes.
interface Svm {
    function createBytes(uint256 size, string calldata name) external pure returns (bytes memory);
    function createUint(uint256 bits, string calldata name) external pure returns (uint256);
    function enableSymbolicStorage(address account) external;
}

/// @title What all proofs start from: the contract in any state
/// @notice All storage is symbolic, that is, any: balances, claims, what is redeemed, what waits, times, roles. Only the
/// epoch is 0, because where a committee's keys are must be known, and the committee has four members. `ecrecover` is
/// any function: it may give any address for any signature, but the same one each time.
abstract contract Proof {
    Svm internal constant svm = Svm(address(uint160(uint256(keccak256("svm cheat code")))));
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    uint256 internal constant MEMBERS = 4;
    uint256 internal constant QUORUM = 3;
    address internal constant ETHER = address(0);
    address internal constant RELAYER = address(0x4e1a);
    /// @dev Where the contract keeps `State`, and where in it the epoch is.
    uint256 private constant STATE_SLOT = 3;

    IFastPay internal fastPay;
    ICouncil internal council;

    function setUp() public {
        Authority[] memory members = new Authority[](MEMBERS);
        for (uint256 i = 0; i < MEMBERS; ++i) {
            members[i] = Authority({votingKey: bytes32(i + 1), redemptionKey: _key(i)});
        }
        SafetyParameters memory parameters = SafetyParameters({
            pauseDuration: 1 days,
            pauseCooldown: 7 days,
            outflowWindow: 1 days,
            outflowShare: 1000,
            outflowDelay: 3 days,
            votesValidity: 14 days,
            unlockWindow: 7 days
        });
        // By the names of their artifacts, so that the contracts are proven as they are compiled to be deployed. FastPay is the
        // second contract that is created here: RLP of [address, nonce].
        address second =
            address(uint160(uint256(keccak256(abi.encodePacked(hex"d694", address(this), hex"02")))));
        council = ICouncil(
            _create(
                bytes.concat(
                    vm.getCode("target/halmos/out/Council.sol/Council.json"),
                    abi.encode(second, address(0x4ec))
                )
            )
        );
        fastPay = IFastPay(
            payable(_create(
                    bytes.concat(
                        vm.getCode("target/halmos/out/FastPay.sol/FastPay.json"),
                        abi.encode(members, address(0x6a), council, parameters, new AssetCap[](0))
                    )
                ))
        );
        vm.deal(address(fastPay), 1 << 120);
        vm.deal(address(council), 1 << 100);
        svm.enableSymbolicStorage(address(fastPay));
        svm.enableSymbolicStorage(address(council));
        bytes memory state = abi.encodePacked(
            uint152(svm.createUint(152, "ether")),
            // 36 bits of `pausedUntil`, 20 of the epoch
            uint56(svm.createUint(36, "pausedUntil") << 20),
            uint48(svm.createUint(48, "lastTransactionIndex"))
        );
        vm.store(address(fastPay), bytes32(STATE_SLOT), bytes32(state));
    }

    function _key(uint256 member) internal pure returns (address) {
        return address(uint160(0xa0 + member));
    }

    /// @dev Calls as a relayer without code.
    function _call(bytes memory data) internal returns (bool success) {
        vm.prank(RELAYER);
        (success,) = address(fastPay).call(data);
    }

    /// @dev Any redemption of ETH, to somebody without code: what recipients do is for other tests.
    function _anyOrder(string memory name) internal pure returns (Redemption memory order) {
        order = Redemption({
            sender: bytes32(svm.createUint(256, string.concat(name, ".sender"))),
            recipient: address(0xb0b),
            asset: ETHER,
            amount: uint128(svm.createUint(128, string.concat(name, ".amount"))),
            fee: uint128(svm.createUint(128, string.concat(name, ".fee"))),
            sequence: uint64(svm.createUint(64, string.concat(name, ".sequence"))),
            memo: bytes32(svm.createUint(256, string.concat(name, ".memo")))
        });
    }

    /// @dev Any votes of the right length. Which member each is by must be known on each path, because the contract
    /// looks its key up; so they are gone through one by one.
    function _anyVotes() internal pure returns (bytes memory votes) {
        for (uint256 i = 0; i < QUORUM; ++i) {
            votes = bytes.concat(
                votes,
                bytes1(uint8(_anyMember(svm.createUint(8, "member")))),
                svm.createBytes(65, "signature")
            );
        }
    }

    /// @dev Votes in the names of three known members, with any r and s. One proof tries all members and all v; the others
    /// go through the same code and leave that out, for it takes a hundred times as many paths.
    function _someVotes() internal pure returns (bytes memory votes) {
        for (uint8 member = 0; member < QUORUM; ++member) {
            votes = bytes.concat(votes, bytes1(member), svm.createBytes(64, "signature"), bytes1(uint8(27)));
        }
    }

    /// @dev Beyond the committee: the first and the last that a byte can name.
    function _anyMember(uint256 any) private pure returns (uint256) {
        for (uint256 member = 0; member <= MEMBERS; ++member) {
            if (any == member) return member;
        }
        vm.assume(any == type(uint8).max);
        return type(uint8).max;
    }

    /// @dev The statement that all proofs about votes end with: different members, a quorum of them, signed this.
    function _assertQuorum(bytes memory votes, bytes32 digest) internal pure {
        assert(votes.length == QUORUM * 66);
        uint256 next = 0;
        for (uint256 i = 0; i < QUORUM; ++i) {
            (bytes32 r, bytes32 s) = (_word(votes, 66 * i + 1), _word(votes, 66 * i + 33));
            uint256 member = uint8(votes[66 * i]);
            assert(member >= next && member < MEMBERS);
            assert(ecrecover(digest, uint8(votes[66 * i + 65]), r, s) == _key(member));
            next = member + 1;
        }
    }

    function _create(bytes memory code) private returns (address created) {
        assembly ("memory-safe") {
            created := create(0, add(code, 0x20), mload(code))
        }
        require(created != address(0));
    }

    function _word(bytes memory data, uint256 offset) private pure returns (bytes32 word) {
        assembly ("memory-safe") {
            word := mload(add(add(data, 0x20), offset))
        }
    }
}
