// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Announcement, CapRaise, ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {IFastPay, Redemption, SafetyParameters} from "../contracts/interfaces/IFastPay.sol";
import {ChainFile} from "../script/ChainFile.sol";
import {Council} from "../script/Council.s.sol";
import {Deploy} from "../script/Deploy.s.sol";
import {KnownKeys} from "../script/KnownKeys.sol";
import {Pause} from "../script/Pause.s.sol";
import {Queue} from "../script/Queue.s.sol";
import {Verify} from "../script/Verify.s.sol";
import {OperatorFiles} from "./OperatorFiles.sol";
import {History} from "./mocks/History.sol";

/// @title What operators run
contract ScriptsTest is OperatorFiles {
    /// @dev Who broadcasts in a script that is given no key.
    address private constant OPERATOR = 0x1804c8AB1F12E6bbf3894d4083f33e07309d1f38;

    /// @dev Of the addresses in `KnownKeys`, a word each.
    bytes32 private constant KNOWN_KEYS_HASH =
        0xced25480e533283eaa06e4fb2027d2646bcbba9a3b7b8eb9894243d965f9d7d6;

    Deploy private _deploy = new Deploy();
    Verify private _verify = new Verify();
    Council private _council = new Council();
    Queue private _queue = new Queue();

    function setUp() public override {
        super.setUp();
        fastPay = _deploy.deploy(_file(4, OPERATOR), OPERATOR);
        vm.setEnv("CONTRACT", vm.toString(address(fastPay))); // the same in each test here
        vm.createDir(FOLDER, true);
    }

    // -------------------------------------------------------------------------------------- deploy

    function test_DeploysWhatTheFileSays() public view {
        assertEq(abi.encode(fastPay.committee(0)), abi.encode(authorities(4)));
        assertEq(abi.encode(fastPay.safetyParameters()), abi.encode(_parameters()));
        assertEq(fastPay.guardian(), OPERATOR);
    }

    function test_TheExampleCanBeDeployed() public {
        vm.chainId(11155111);
        string memory file = vm.readFile("deployments/example.json");
        _verify.verify(file, address(_deploy.deploy(file, alice)));
    }

    function test_ALocalChainHasDefaults() public {
        IFastPay local = _deploy.deploy(string.concat('{"authorities":', listOf(authorities(5)), "}"), alice);
        assertEq(local.guardian(), alice);
        SafetyParameters memory published =
            SafetyParameters(1 days, 7 days, 1 days, 5000, 3 days, 14 days, 7 days);
        assertEq(abi.encode(local.safetyParameters()), abi.encode(published));
    }

    function test_RevertIf_AnotherChainHasNoParameters() public {
        vm.chainId(1);
        // Keys that nobody knows.
        string memory example = vm.readFile("deployments/example.json");
        string memory start = string.concat('{"authorities":', listOf(ChainFile.authorities(example)));
        vm.expectRevert("chainId is missing");
        _deploy.deploy(string.concat(start, "}"), alice);
        start = string.concat(start, ',"chainId":1');
        vm.expectRevert(".guardian is missing");
        _deploy.deploy(string.concat(start, "}"), alice);
        start = string.concat(start, ',"guardian":"', vm.parseJsonString(example, ".guardian"), '"');
        vm.expectRevert(".recovery is missing");
        _deploy.deploy(string.concat(start, "}"), alice);
        start = string.concat(start, ',"recovery":"', vm.parseJsonString(example, ".recovery"), '"');
        vm.expectRevert(".safetyParameters.pauseDuration is missing");
        _deploy.deploy(string.concat(start, "}"), alice);
        vm.expectRevert(".safetyParameters.votesValidity is missing");
        _deploy.deploy(
            string.concat(
                start,
                ',"safetyParameters":{"pauseDuration":86400,"pauseCooldown":604800,"outflowWindow":86400,',
                '"outflowShare":1000,"outflowDelay":86400}}'
            ),
            alice
        );
    }

    function test_RevertIf_TheFileIsForAnotherChain() public {
        string memory file = _file(4, OPERATOR);
        vm.chainId(1);
        vm.expectRevert("the file is for another chain");
        _deploy.deploy(file, alice);
    }

    function test_RevertIf_TheContractRefusesTheFile() public {
        string memory file = _file(3, OPERATOR);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 3));
        _deploy.deploy(file, alice);
    }

    function test_DeploysAndVerifiesTheLargestCommittee() public {
        string memory file = _file(255, OPERATOR);
        IFastPay large = _deploy.deploy(file, alice);
        assertEq(large.quorum(0), 170);
        _verify.verify(file, address(large));
    }

    /// @dev A chain takes no more code and arguments at once.
    function test_RevertIf_ThereAreTooManyCaps() public {
        string memory caps = '{"asset":"0x0000000000000000000000000000000000000000","cap":1}';
        for (uint256 i = 1; i < 120; ++i) {
            caps = string.concat(caps, ',{"asset":"', vm.toString(address(uint160(i))), '","cap":1}');
        }
        string memory file = vm.replace(
            _file(255, OPERATOR), '"authorities":', string.concat('"caps":[', caps, '],"authorities":')
        );
        vm.expectRevert("too many authorities and caps for one creation (EIP-3860)");
        _deploy.deploy(file, alice);
    }

    /// @dev The first of the two transactions was mined, the second was not sent.
    function test_GoesOnWithTheCouncilThatIsThere() public {
        string memory file = _file(4, OPERATOR);
        address council = _createCouncil(file);
        fastPay = _deploy.deploy(file, alice);
        assertEq(address(fastPay.council()), council);
        assertEq(vm.getNonce(alice), 2);
        _verify.verify(file, address(fastPay));
    }

    function test_ACouncilWithoutItsContractTakesNothing() public {
        ICouncil council = ICouncil(_createCouncil(_file(4, OPERATOR)));
        vm.deal(bob, 1 ether);
        vm.prank(bob);
        vm.expectRevert();
        council.requestUnlock{value: 0.005 ether}(keccak256("an account"), 0, "");
        vm.expectRevert();
        council.heartbeat(0, "");
    }

    /// @dev A contract that is verified later was as old then.
    function test_ACouncilThatIsTooOldIsNotUsed() public {
        string memory file = _file(4, OPERATOR);
        address council = _createCouncil(file);
        vm.warp(vm.getBlockTimestamp() + 12 hours + 1);
        fastPay = _deploy.deploy(file, alice);
        assertNotEq(address(fastPay.council()), council);
        vm.warp(vm.getBlockTimestamp() + 365 days);
        _verify.verify(file, address(fastPay));
    }

    function test_ACouncilOfAnotherFileIsNotUsed() public {
        address council =
            _createCouncil(vm.replace(_file(4, OPERATOR), vm.toString(recovery), vm.toString(bob)));
        fastPay = _deploy.deploy(_file(4, OPERATOR), alice);
        assertNotEq(address(fastPay.council()), council);
        assertEq(fastPay.council().recovery(), recovery);
    }

    /// @dev Its contract would have been somewhere else.
    function test_ACouncilOfALaterNonceIsNotUsed() public {
        string memory file = _file(4, OPERATOR);
        address council = _createCouncil(file);
        vm.setNonce(alice, 2);
        fastPay = _deploy.deploy(file, alice);
        assertNotEq(address(fastPay.council()), council);
        _verify.verify(file, address(fastPay));
    }

    /// @dev Alice's first transaction.
    function _createCouncil(string memory file) private returns (address council) {
        IFastPay next = IFastPay(payable(vm.computeCreateAddress(alice, 1)));
        bytes memory creation = ChainFile.councilCreation(file, next);
        vm.prank(alice);
        assembly ("memory-safe") {
            council := create(0, add(creation, 0x20), mload(creation))
        }
    }

    function test_RevertIf_EverybodyKnowsAKey() public {
        vm.chainId(11155111);
        string memory file = vm.readFile("deployments/example.json");
        // The guardian, the recovery address and a member: a small integer's, and two of anvil's.
        address[3] memory known = [
            vm.addr(7), 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266, 0x70997970C51812dc3A010C7d01b50e0d17dc79C8
        ];
        string[3] memory keys = [".guardian", ".recovery", ".authorities[0].redemptionKey"];
        for (uint256 i = 0; i < 3; ++i) {
            string memory was = vm.toString(vm.parseJsonAddress(file, keys[i]));
            string memory bad = vm.replace(file, was, vm.toString(known[i]));
            vm.expectRevert(bytes(string.concat("everybody knows the secret of ", vm.toString(known[i]))));
            _deploy.deploy(bad, alice);
        }
        // Of RFC 8032, of 32 times the byte 5, and of a test.
        string[3] memory votingKeys = [
            "0xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "0x6e7a1cdd29b0b78fd13af4c5598feff4ef2a97166e3ca6f2e4fbfccd80505bf1",
            vm.toString(
                vm.parseJsonBytes32(vm.readFile("vectors/redemptions.json"), ".committee[0].votingKey")
            )
        ];
        string memory name = vm.toString(vm.parseJsonBytes32(file, ".authorities[0].votingKey"));
        for (uint256 i = 0; i < 3; ++i) {
            vm.expectRevert(bytes(string.concat("everybody knows the secret of ", votingKeys[i])));
            _deploy.deploy(vm.replace(file, name, votingKeys[i]), alice);
        }
    }

    /// @dev Of each family one in its middle, and the last.
    function test_KeysOfTestsAreKnown() public view {
        address[] memory known = KnownKeys.addresses();
        uint256[14] memory secrets = [
            uint256(7),
            1000,
            uint256(bytes32(hex"5252525252525252525252525252525252525252525252525252525252525252")),
            uint256(bytes32(hex"fefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefe")),
            uint256(bytes32(hex"0202020202020202020202020202020202020202020202020000000000000001")),
            uint256(bytes32(hex"0404040404040404040404040404040404040404040404040000000000000001")),
            uint256(bytes32(hex"04040404040404040404040404040404040404040404040400000000000003eb")),
            uint256(bytes32(hex"04040404040404040404040404040404040404040404040400000000000008cf")),
            memberKey(3),
            memberKey(999),
            uint256(keccak256("redemption epoch 0 0")),
            uint256(keccak256("redemption epoch 2 9")),
            uint256(keccak256("guardian")),
            0xa11ce
        ];
        for (uint256 i = 0; i < secrets.length; ++i) {
            assertTrue(KnownKeys.has(known, vm.addr(secrets[i])), vm.toString(secrets[i]));
        }
        assertTrue(KnownKeys.has(known, 0x8626f6940E2eb28930eFb4CeF49B2d1F2C9C1199), "the last of anvil's");
        assertTrue(KnownKeys.has(known, guardian) && KnownKeys.has(known, recovery));
        assertFalse(KnownKeys.has(known, vm.addr(uint256(keccak256("nobody's")))));
        // `ethereum/src/known_keys.rs` computes the same list.
        assertEq(keccak256(abi.encodePacked(known)), KNOWN_KEYS_HASH);
        string memory vectors = vm.readFile("vectors/redemptions.json");
        for (uint256 i = 0; i < 4; ++i) {
            string memory member = string.concat(".committee[", vm.toString(i), "]");
            assertTrue(
                KnownKeys.has(known, vm.parseJsonAddress(vectors, string.concat(member, ".redemptionKey")))
            );
        }
    }

    function test_RevertIf_TheGuardianIsAMember() public {
        string memory file = _file(4, authorities(4)[2].redemptionKey);
        vm.expectRevert("the guardian is a member of the committee");
        _deploy.deploy(file, alice);
    }

    function test_DeploysAndVerifiesDepositCaps() public {
        string memory caps =
            string.concat('"caps":[{"asset":"', vm.toString(address(token)), '","cap":1000}],"authorities":');
        string memory file = vm.replace(_file(4, OPERATOR), '"authorities":', caps);
        IFastPay capped = _deploy.deploy(file, alice);
        assertEq(capped.depositCap(address(token)), 1000);
        _verify.verify(file, address(capped));
        vm.expectRevert("a deposit cap is lower than in the file");
        _verify.verify(vm.replace(file, '"cap":1000', '"cap":1002'), address(capped));
        // One that was raised is as it should be.
        vm.prank(address(capped.council()));
        capped.setCap(address(token), 2000);
        _verify.verify(file, address(capped));
    }

    // -------------------------------------------------------------------------------------- verify

    function test_VerifiesWhatIsDeployed() public {
        _verify.verify(_file(4, OPERATOR), address(fastPay));
    }

    function test_VerifiesAContractInUse() public {
        fundEther(1 ether);
        redeem(redemption(ETHER, 0.1 ether, 0, 0));
        rotate(authoritiesFrom(10, 7), bob);
        skip(10 days);
        vm.roll(block.number + 1000);
        _verify.verify(_file(4, OPERATOR), address(fastPay));
        // And leaves no trace.
        assertEq(fastPay.epoch(), 1);
        assertHolding(ETHER, 0.9 ether, 0);
    }

    function test_RevertIf_WhatIsDeployedIsSomethingElse() public {
        string memory file = _file(4, OPERATOR);
        vm.expectRevert("there is no contract at the address");
        _verify.verify(file, alice);

        vm.expectRevert("the committee of epoch 0 is another");
        _verify.verify(_file(5, OPERATOR), address(fastPay));

        vm.expectRevert("the guardian is another");
        _verify.verify(_file(4, bob), address(fastPay));

        SafetyParameters memory others = _parameters();
        others.outflowDelay += 1;
        string memory wrong = "the runtime code is not this source's with these safety parameters";
        vm.expectRevert(bytes(wrong));
        _verify.verify(_fileWith(4, OPERATOR, others), address(fastPay));

        vm.expectRevert("the recovery address is another");
        _verify.verify(vm.replace(file, vm.toString(recovery), vm.toString(bob)), address(fastPay));

        bytes memory council = address(fastPay.council()).code;
        bytes memory changed = bytes.concat(council);
        changed[council.length / 2] ^= 0x01;
        vm.etch(address(fastPay.council()), changed);
        vm.expectRevert("the council's runtime code is not this source's");
        _verify.verify(file, address(fastPay));
        vm.etch(address(fastPay.council()), council);

        bytes memory code = address(fastPay).code;
        code[code.length / 2] ^= 0x01;
        vm.etch(address(fastPay), code);
        vm.expectRevert();
        _verify.verify(file, address(fastPay));
    }

    /// @dev What a creation code leaves in storage is not in the runtime code: only its hash tells one that gives its author
    /// a claim from ours.
    function test_TheCreationCodeHasToBeComparedToo() public {
        string memory file = _file(4, OPERATOR);
        (bytes32 contractHash, bytes32 councilHash) = _verify.creationHashes(file, fastPay);
        ICouncil council = fastPay.council();
        assertEq(
            contractHash, keccak256(ChainFile.fastPayCreation(file, OPERATOR, council, ChainFile.caps(file)))
        );
        assertEq(councilHash, keccak256(ChainFile.councilCreation(file, fastPay)));
        bytes32 claim = keccak256(abi.encode(ETHER, keccak256(abi.encode(alice, 8))));
        vm.store(address(fastPay), claim, bytes32(uint256(1 ether)));
        assertEq(fastPay.claimOf(alice, ETHER), 1 ether);
        _verify.verify(file, address(fastPay));
    }

    // --------------------------------------------------------------------------------------- pause

    function test_TheGuardianPausesAndEndsThePause() public {
        Pause pause = new Pause();
        pause.run();
        assertEq(fastPay.pausedUntil(), block.timestamp + 1 days);
        pause.end();
        assertEq(fastPay.pausedUntil(), block.timestamp);

        vm.expectRevert("the contract is not paused");
        pause.end();
        vm.stopBroadcast(); // which the failed script had begun
        vm.expectRevert(
            bytes(string.concat("the next pause may begin at ", vm.toString(fastPay.nextPauseAt())))
        );
        pause.run();
    }

    function test_RevertIf_AnotherPauses() public {
        rotate(authorities(4), bob);
        Pause pause = new Pause();
        bytes memory refused = bytes(string.concat("the guardian is ", vm.toString(bob)));
        vm.expectRevert(refused);
        pause.run();
        vm.stopBroadcast();
        vm.expectRevert(refused);
        pause.end();
    }

    /// @dev The scripts as they are run, from files and the environment. One test, because the environment is one.
    function test_TheWholeWay() public {
        string memory first = string.concat(FOLDER, "chain.json");
        vm.writeFile(first, _file(4, OPERATOR));
        vm.setEnv("COMMITTEE", first);
        vm.setEnv("DEPLOYMENT", string.concat(FOLDER, "deployment.json"));
        IFastPay another = _deploy.run();
        assertEq(another.guardian(), OPERATOR);
        string memory written = vm.readFile(string.concat(FOLDER, "deployment.json"));
        assertEq(vm.parseJsonAddress(written, ".contract"), address(another));
        _deploy.record();
        written = vm.readFile(string.concat(FOLDER, "deployment.json"));
        assertEq(vm.parseJsonUint(written, ".deploymentBlock"), another.deploymentBlock());
        _verify.run(); // of the one that setUp deployed

        fundEther(10 ether);
        vm.roll(1000);
        _queueAndPostpone();
        _replaceTheCommittee();
        _executeAndRelease();
        _raiseACap();
        _heartbeat();
    }

    /// @dev Two redemptions of epoch 0 wait, above an outflow limit that is used up.
    function _queueAndPostpone() private {
        for (uint64 i = 0; i < 3; ++i) {
            redeem(redemption(ETHER, i == 0 ? 9 ether : 0.7 ether, 0, i));
        }
        assertEq(fastPay.totalQueued(ETHER), 1.4 ether);
        (uint256 before,,,) = fastPay.queued(ACCOUNT, 1);
        vm.setEnv("EPOCH", "0");
        vm.setEnv("SECONDS", "86400");
        _queue.postpone();
        (uint256 executableAt,,,) = fastPay.queued(ACCOUNT, 1);
        assertEq(executableAt, before + 1 days);
    }

    /// @dev As `fastpay-node committee` does. Then its members adopt a checkpoint.
    function _replaceTheCommittee() private {
        ICouncil council = fastPay.council();
        Announcement memory next = Announcement({
            epoch: 1,
            authorities: authoritiesFrom(10, 4),
            guardian: OPERATOR,
            recovery: OPERATOR,
            compromisedSince: 0,
            checkpoint: keccak256("checkpoint"),
            deadline: uint64(vm.getBlockTimestamp() + 1 days)
        });
        bytes32 id = council.announcementDigest(next);
        bytes memory proofs = "";
        for (uint256 i = 10; i < 14; ++i) {
            bytes32 possession = council.possessionDigest(authoritiesFrom(i, 1)[0]);
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(memberKey(i), possession);
            proofs = bytes.concat(proofs, abi.encodePacked(r, s, v), possession, possession);
        }
        council.announce(next, proofs, votesOf(0, 3, id));
        vm.prank(OPERATOR);
        council.endorse(id);
        vm.warp(vm.getBlockTimestamp() + 1 days);
        council.mature(id);
        uint256 matured = vm.getBlockNumber();
        vm.roll(matured + 1);
        bytes32 digest = council.acceptanceDigest(1, id, blockhash(matured));
        bytes memory accepted = "";
        for (uint8 i = 0; i < 3; ++i) {
            accepted = bytes.concat(accepted, vote(i, memberKey(10 + i), digest));
        }
        council.install(next, matured, accepted);
        assertEq(fastPay.epoch(), 1);
        assertTrue(fastPay.compromised(0));

        bytes32 checkpoint = keccak256("a rebuilt checkpoint");
        vm.setEnv("CHECKPOINT", vm.toString(checkpoint));
        // A bad vote is left out.
        putVotes(10, 3, 2, fastPay.council().adoptionDigest(1, checkpoint));
        vm.expectRevert("only 0 good votes, and 3 are needed");
        _council.adopt();
        putVotes(10, 3, 1, keccak256("another statement"));
        vm.expectRevert("only 0 good votes, and 3 are needed");
        _council.adopt();
        putVotes(10, 3, 1, fastPay.council().adoptionDigest(1, checkpoint));
        _council.adopt();
        assertEq(fastPay.council().adopted(1), checkpoint);
    }

    function _executeAndRelease() private {
        vm.warp(vm.getBlockTimestamp() + 4 days);
        Redemption[] memory one = new Redemption[](1);
        one[0] = redemption(ETHER, 0.7 ether, 0, 1);
        put("REDEMPTION", "order.json", redemptionFile(one[0]));
        putVotes(10, 3, 1, fastPay.redemptionBatchVoteDigest(1, one));
        _queue.execute();
        assertEq(bob.balance, 9.7 ether);

        Redemption memory stolen = redemption(ETHER, 0.7 ether, 0, 2);
        put("REDEMPTION", "order.json", redemptionFile(stolen));
        putVotes(10, 3, 1, fastPay.releaseVoteDigest(1, stolen));
        _queue.release();
        assertEq(fastPay.totalQueued(ETHER), 0);
        assertHolding(ETHER, 0.3 ether, 0);
    }

    function _raiseACap() private {
        // Of a contract with a cap, at the address that the environment names.
        uint256 slot = uint256(vm.load(address(fastPay), bytes32(uint256(3))));
        vm.store(address(fastPay), bytes32(uint256(3)), bytes32(slot | ((59 << 9 | 256) << 104)));
        CapRaise memory raise = CapRaise(1, ETHER, 1 << 80, uint64(vm.getBlockTimestamp()));
        string memory rest =
            string.concat('","cap":1208925819614629174706176,"deadline":', vm.toString(raise.deadline), "}");
        put("RAISE", "raise.json", string.concat('{"epoch":1,"asset":"', vm.toString(ETHER), rest));
        putVotes(10, 3, 1, fastPay.council().capRaiseDigest(raise));
        _council.announceCap();
        _council.endorse();
        vm.warp(vm.getBlockTimestamp() + 1 days);
        _council.raiseCap();
        assertEq(fastPay.depositCap(ETHER), 1 << 80);
    }

    function _heartbeat() private {
        uint256 blockNumber = vm.getBlockNumber() - 1;
        bytes32 hash = blockhash(blockNumber);
        vm.setEnv("BLOCK", vm.toString(blockNumber));
        putVotes(10, 3, 1, fastPay.council().heartbeatDigest(1, hash));
        vm.roll(blockNumber + 7200);
        vm.expectRevert(abi.encodeWithSelector(ICouncil.UnknownBlock.selector, blockNumber));
        _council.heartbeat();
        History.keep(blockNumber, hash);
        _council.heartbeat();
        assertEq(fastPay.council().lastHeartbeat(), vm.getBlockTimestamp());
    }

    // ------------------------------------------------------------------------------------- private

    function _parameters() private pure returns (SafetyParameters memory) {
        return SafetyParameters(1 days, 7 days, 1 days, 10_000, 3 days, 14 days, 7 days);
    }

    function _file(uint256 size, address guardian_) private view returns (string memory) {
        return _fileWith(size, guardian_, _parameters());
    }

    function _fileWith(uint256 size, address guardian_, SafetyParameters memory parameters)
        private
        view
        returns (string memory)
    {
        string memory times = string.concat(
            '"pauseDuration":',
            vm.toString(parameters.pauseDuration),
            ',"pauseCooldown":',
            vm.toString(parameters.pauseCooldown),
            ',"outflowWindow":',
            vm.toString(parameters.outflowWindow),
            ',"outflowDelay":',
            vm.toString(parameters.outflowDelay)
        );
        string memory rest = string.concat(
            ',"outflowShare":',
            vm.toString(parameters.outflowShare),
            ',"votesValidity":',
            vm.toString(parameters.votesValidity),
            ',"unlockWindow":',
            vm.toString(parameters.unlockWindow)
        );
        return string.concat(
            '{"chainId":',
            vm.toString(block.chainid),
            ',"authorities":',
            listOf(authorities(size)),
            ',"guardian":"',
            vm.toString(guardian_),
            '","recovery":"',
            vm.toString(recovery),
            '","safetyParameters":{',
            times,
            rest,
            "}}"
        );
    }
}
