// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title Every external function of the compiled contract, and who can do what with it
/// @notice A function that is added without being listed here fails the first test. There is no other way to change
/// the contract: no owner, no upgrade, no foreign code that runs as its own.
contract RolesTest is FastPayTest {
    string private constant ARTIFACT = "out/FastPay.sol/FastPay.json";

    enum Role {
        Unlisted,
        View, // changes nothing
        Anyone, // brings value in, or finishes what a quorum decided
        Claimant, // takes what is the caller's already
        Quorum, // anyone may bring the votes; without them nothing happens
        Council, // the council alone
        Guardian
    }

    mapping(string signature => Role) private _roles;
    uint256 private _listed;

    function setUp() public override {
        super.setUp();
        fundEther(10 ether);

        string memory order = "(bytes32,address,address,uint128,uint128,uint64,bytes32)";
        _list(Role.Anyone, "depositEther(bytes32)");
        _list(Role.Anyone, "depositToken(bytes32,address,uint128)");
        _list(Role.Anyone, "depositTokenWithPermit(bytes32,address,uint128,uint256,uint8,bytes32,bytes32)");
        _list(Role.Anyone, string.concat("executeQueued(", order, ",bytes)"));
        _list(Role.Anyone, "claimFor(address,address,uint256)");
        _list(Role.Claimant, "claim(address,address,uint256)");
        _list(Role.Quorum, string.concat("redeem(", order, ",uint64,bytes)"));
        _list(Role.Quorum, string.concat("redeemMany((", order, ",uint64,bytes)[])"));
        _list(Role.Quorum, string.concat("redeemBatch(", order, "[],uint64,bytes)"));
        _list(Role.Quorum, string.concat("releaseQueued(", order, ",bytes)"));
        _list(Role.Council, "install((bytes32,address)[],address,uint64,bytes32)");
        _list(Role.Council, "setCap(address,uint128)");
        _list(Role.Council, "requestUnlock(bytes32,uint64,uint256,bytes)");
        _list(Role.Council, "uphold(bytes32,uint64,bytes32)");
        _list(Role.Council, "void(bytes32,uint64)");
        _list(Role.Guardian, "pause()");
        _list(Role.Guardian, "unpause()");
        _list(Role.Guardian, "postpone(uint64,uint256)");
        _list(Role.View, "safetyParameters()");
        _list(Role.View, "council()");
        _list(Role.View, "compromised(uint64)");
        _list(Role.View, "depositCap(address)");
        _list(Role.View, "claimOf(address,address)");
        _list(Role.View, "committee(uint64)");
        _list(Role.View, "deploymentBlock()");
        _list(Role.View, "eip712Domain()");
        _list(Role.View, "epoch()");
        _list(Role.View, "epochValidUntil(uint64)");
        _list(Role.View, "guardian()");
        _list(Role.View, "isRedeemed(bytes32,uint64)");
        _list(Role.View, "lastTransactionIndex()");
        _list(Role.View, "nextPauseAt()");
        _list(Role.View, "outflowAvailable(address)");
        _list(Role.View, "pausedUntil()");
        _list(Role.View, "queued(bytes32,uint64)");
        _list(Role.View, "quorum(uint64)");
        _list(Role.View, "redeemedBitmap(bytes32,uint256)");
        _list(Role.View, string.concat("redemptionBatchVoteDigest(uint64,", order, "[])"));
        _list(Role.View, string.concat("redemptionVoteDigest(uint64,", order, ")"));
        _list(Role.View, string.concat("releaseVoteDigest(uint64,", order, ")"));
        _list(Role.View, "totalBalance(address)");
        _list(Role.View, "totalClaims(address)");
        _list(Role.View, "totalQueued(address)");
    }

    function test_EveryFunctionHasItsRole() public view {
        string[] memory signatures = vm.parseJsonKeys(vm.readFile(ARTIFACT), ".methodIdentifiers");
        for (uint256 i = 0; i < signatures.length; ++i) {
            assertTrue(_roles[signatures[i]] != Role.Unlisted, signatures[i]);
        }
        assertEq(signatures.length, _listed, "a function is listed that there is not");
    }

    function test_ViewsChangeNothingAndNothingElseIsAView() public view {
        string memory json = vm.readFile(ARTIFACT);
        uint256 views = 0;
        uint256 entries = 0; // that receive value without a function's name
        for (uint256 i = 0; vm.keyExistsJson(json, _abi(i, "")); ++i) {
            bytes32 kind = keccak256(bytes(vm.parseJsonString(json, _abi(i, ".type"))));
            assertTrue(kind != keccak256("fallback"), "a fallback");
            if (kind == keccak256("receive")) ++entries;
            if (kind != keccak256("function")) continue;
            bytes32 mutability = keccak256(bytes(vm.parseJsonString(json, _abi(i, ".stateMutability"))));
            if (mutability == keccak256("view") || mutability == keccak256("pure")) ++views;
        }
        assertEq(entries, 1);
        uint256 listed = 0;
        string[] memory signatures = vm.parseJsonKeys(json, ".methodIdentifiers");
        for (uint256 i = 0; i < signatures.length; ++i) {
            if (_roles[signatures[i]] == Role.View) ++listed;
        }
        assertEq(views, listed);
    }

    /// @dev Whoever calls, even the guardian or a member of the committee: without votes nothing leaves and nobody
    /// changes.
    function test_NobodyDoesWhatAQuorumDoes() public {
        address[4] memory callers = [alice, guardian, vm.addr(memberKey(0)), address(fastPay)];
        Redemption memory order = redemption(ETHER, 1 ether, 0, 0);
        CertifiedRedemption[] memory many = new CertifiedRedemption[](1);
        many[0] = CertifiedRedemption({redemption: order, epoch: 0, votes: ""});
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = order;
        bytes[3] memory calls = [
            abi.encodeCall(IFastPay.redeem, (order, 0, "")),
            abi.encodeCall(IFastPay.redeemMany, (many)),
            abi.encodeCall(IFastPay.redeemBatch, (batch, 0, ""))
        ];
        for (uint256 i = 0; i < callers.length; ++i) {
            for (uint256 j = 0; j < calls.length; ++j) {
                vm.prank(callers[i], callers[i]);
                (bool success, bytes memory answer) = address(fastPay).call(calls[j]);
                assertFalse(success);
                assertEq(bytes4(answer), IFastPay.WrongVotesLength.selector);
            }
        }
        assertEq(fastPay.epoch(), 0);
        assertHolding(ETHER, 10 ether, 0);
    }

    /// @dev No code but its own runs as the contract, it cannot end, and it creates committees only.
    function test_NoInstructionCouldReplaceTheContract() public view {
        bytes memory code = address(fastPay).code;
        uint256 creations = 0;
        uint256 i = 0;
        for (; i < code.length && code[i] != 0xfe; ++i) {
            uint8 instruction = uint8(code[i]);
            assertTrue(instruction != 0xf2 && instruction != 0xf4, "a delegated call");
            assertTrue(instruction != 0xff, "a self-destruction");
            assertTrue(instruction != 0xf5, "a creation at a chosen address");
            if (instruction == 0xf0) ++creations;
            if (instruction >= 0x60 && instruction <= 0x7f) i += instruction - 0x5f; // a constant
        }
        assertEq(creations, 1);
        assertGt(i, 15_000, "the code has not been read to its end");
        // 24,576 is what a chain takes (EIP-170). The rest is room for what a fix needs before the first deployment.
        assertLt(code.length, 23_000, "FastPay is too long");
    }

    function _list(Role role, string memory signature) private {
        require(_roles[signature] == Role.Unlisted, "listed twice");
        _roles[signature] = role;
        ++_listed;
    }

    function _abi(uint256 i, string memory field) private pure returns (string memory) {
        return string.concat(".abi[", vm.toString(i), "]", field);
    }
}
