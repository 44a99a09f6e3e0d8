// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, CapRaise, ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {Authority} from "../contracts/interfaces/IFastPay.sol";
import {VectorsTest} from "./Vectors.t.sol";

/// @title The council's statements in the vectors that the Rust core writes: both sides hash alike, and judge alike
contract CouncilVectorsTest is VectorsTest {
    ICouncil private _council;

    function setUp() public {
        _deploy("vectors/redemptions.json");
        _council = _fastPay.council();
    }

    function test_EachRotation() public {
        _assertBothKinds(_each(".rotations", this.checkRotation));
    }

    /// @dev Checks one rotation as if it were the only one, a week before its deadline.
    function checkRotation(string memory path) external returns (bool valid) {
        string memory json = _json();
        string memory name = vm.parseJsonString(json, string.concat(path, ".name"));
        Announcement memory announcement = _announcement(json, path);
        bytes32 id = vm.parseJsonBytes32(json, string.concat(path, ".voteDigest"));
        assertEq(_council.announcementDigest(announcement), id, name);
        for (uint256 i = 0; i < announcement.authorities.length; ++i) {
            bytes32 digest =
                vm.parseJsonBytes32(json, _path(string.concat(path, ".possessionDigests"), i, ""));
            assertEq(_council.possessionDigest(announcement.authorities[i]), digest, name);
        }

        bytes memory proofs = vm.parseJsonBytes(json, string.concat(path, ".proofs"));
        bytes memory votes = vm.parseJsonBytes(json, string.concat(path, ".votes"));
        valid = vm.parseJsonBool(json, string.concat(path, ".valid"));
        uint256 state = vm.snapshotState();
        vm.warp(announcement.deadline - 1 weeks);
        try _council.announce(announcement, proofs, votes) {
            assertTrue(valid, string.concat(name, ": an invalid announcement was taken"));
            (uint64 epoch, uint256 announcedAt,,,,,) = _council.clockOf(id);
            assertEq(epoch, announcement.epoch, name);
            assertEq(announcedAt, vm.getBlockTimestamp(), name);
        } catch (bytes memory reason) {
            assertFalse(
                valid, string.concat(name, ": a valid announcement was refused: ", vm.toString(reason))
            );
        }
        vm.revertToState(state);
    }

    function test_EachStatement() public view {
        string memory json = _json();
        uint64 epoch = _uint64(json, ".statements.epoch");
        bytes32 blockHash = _word(json, "blockHash");
        assertEq(
            _council.acceptanceDigest(epoch, _word(json, "announcement"), blockHash),
            _word(json, "acceptanceDigest")
        );
        assertEq(_council.heartbeatDigest(epoch, blockHash), _word(json, "heartbeatDigest"));
        assertEq(_council.adoptionDigest(epoch, _word(json, "checkpoint")), _word(json, "adoptionDigest"));
        bytes32 account = _word(json, "account");
        uint64 sequence = _uint64(json, ".statements.sequence");
        assertEq(_council.unlockRequestDigest(account, sequence), _word(json, "unlockRequestDigest"));
        assertEq(
            _council.certificateVoteDigest(epoch, account, sequence, _word(json, "orderDigest")),
            _word(json, "certificateVoteDigest")
        );
        assertEq(_council.voidVoteDigest(epoch, account, sequence, false), _word(json, "voidVoteDigest"));
        assertEq(
            _council.voidVoteDigest(epoch, account, sequence, true), _word(json, "unanimousVoidVoteDigest")
        );
        CapRaise memory raise = CapRaise({
            epoch: epoch,
            asset: vm.parseJsonAddress(json, ".statements.asset"),
            // forge-lint: disable-next-line(unsafe-typecast) -- the vectors are ours
            cap: uint128(vm.parseJsonUint(json, ".statements.cap")),
            deadline: _uint64(json, ".statements.deadline")
        });
        assertEq(_council.capRaiseDigest(raise), _word(json, "capRaiseDigest"));
        assertEq(
            _fastPay.releaseVoteDigest(epoch, _redemption(json, ".cases[0].redemption")),
            _word(json, "releaseVoteDigest")
        );
    }

    function _announcement(string memory json, string memory path)
        private
        pure
        returns (Announcement memory)
    {
        string memory authority = "Authority(bytes32 votingKey,address redemptionKey)";
        return Announcement({
            epoch: _uint64(json, string.concat(path, ".epoch")),
            authorities: abi.decode(
                vm.parseJsonTypeArray(json, string.concat(path, ".authorities"), authority), (Authority[])
            ),
            guardian: vm.parseJsonAddress(json, string.concat(path, ".guardian")),
            recovery: vm.parseJsonAddress(json, string.concat(path, ".recovery")),
            compromisedSince: _uint64(json, string.concat(path, ".compromisedSince")),
            checkpoint: vm.parseJsonBytes32(json, string.concat(path, ".checkpoint")),
            deadline: _uint64(json, string.concat(path, ".deadline"))
        });
    }

    function _word(string memory json, string memory name) private pure returns (bytes32) {
        return vm.parseJsonBytes32(json, string.concat(".statements.", name));
    }

    function _uint64(string memory json, string memory path) private pure returns (uint64) {
        // forge-lint: disable-next-line(unsafe-typecast) -- the vectors are ours
        return uint64(vm.parseJsonUint(json, path));
    }
}
