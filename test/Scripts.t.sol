// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, Brakes, IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {Deploy} from "../script/Deploy.s.sol";
import {Pause} from "../script/Pause.s.sol";
import {Rotate} from "../script/Rotate.s.sol";
import {Verify} from "../script/Verify.s.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title What operators run
contract ScriptsTest is FastPayTest {
    /// @dev Who broadcasts in a script that is given no key.
    address private constant OPERATOR = 0x1804c8AB1F12E6bbf3894d4083f33e07309d1f38;
    string private constant FOLDER = "target/forge/";

    Deploy private _deploy = new Deploy();
    Verify private _verify = new Verify();
    Rotate private _rotate = new Rotate();

    function setUp() public override {
        super.setUp();
        fastPay = _deploy.deploy(_file(4, OPERATOR), OPERATOR);
        vm.setEnv("CONTRACT", vm.toString(address(fastPay))); // the same in each test here
        vm.createDir(FOLDER, true);
    }

    // -------------------------------------------------------------------------------------- deploy

    function test_DeploysWhatTheFileSays() public view {
        assertEq(abi.encode(fastPay.committee(0)), abi.encode(authorities(4)));
        assertEq(abi.encode(fastPay.brakes()), abi.encode(_brakes()));
        assertEq(fastPay.guardian(), OPERATOR);
    }

    function test_TheExampleCanBeDeployed() public {
        vm.chainId(11155111);
        string memory file = vm.readFile("deployments/example.json");
        _verify.verify(file, address(_deploy.deploy(file, alice)));
    }

    function test_ALocalChainHasDefaults() public {
        IFastPay local = _deploy.deploy(string.concat('{"authorities":', _list(5), "}"), alice);
        assertEq(local.guardian(), alice);
        Brakes memory published = Brakes(1 days, 7 days, 1 days, 5000, 1 days, 7 days);
        assertEq(abi.encode(local.brakes()), abi.encode(published));
    }

    function test_RevertIf_AnotherChainHasNoParameters() public {
        vm.chainId(1);
        string memory start = string.concat('{"authorities":', _list(4));
        vm.expectRevert("chainId is missing");
        _deploy.deploy(string.concat(start, "}"), alice);
        start = string.concat(start, ',"chainId":1');
        vm.expectRevert(".guardian is missing");
        _deploy.deploy(string.concat(start, "}"), alice);
        start = string.concat(start, ',"guardian":"', vm.toString(alice), '"');
        vm.expectRevert(".brakes.pauseDuration is missing");
        _deploy.deploy(string.concat(start, "}"), alice);
        vm.expectRevert(".brakes.votesValidity is missing");
        _deploy.deploy(
            string.concat(
                start,
                ',"brakes":{"pauseDuration":86400,"pauseCooldown":604800,"outflowWindow":86400,',
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

    // -------------------------------------------------------------------------------------- verify

    function test_VerifiesWhatIsDeployed() public {
        _verify.verify(_file(4, OPERATOR), address(fastPay));
    }

    function test_VerifiesAContractInUse() public {
        fundEther(1 ether);
        redeem(redemption(ETHER, 0.1 ether, 0, 0));
        rotate(authoritiesFrom(10, 7), 0, bob);
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

        Brakes memory others = _brakes();
        others.outflowDelay += 1;
        string memory wrong = "the runtime code is not this source's with these brakes";
        vm.expectRevert(bytes(wrong));
        _verify.verify(_fileWith(4, OPERATOR, others), address(fastPay));

        bytes memory code = address(fastPay).code;
        code[code.length / 2] ^= 0x01;
        vm.etch(address(fastPay), code);
        vm.expectRevert();
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
        rotate(authorities(4), 0, bob);
        Pause pause = new Pause();
        bytes memory refused = bytes(string.concat("the guardian is ", vm.toString(bob)));
        vm.expectRevert(refused);
        pause.run();
        vm.stopBroadcast();
        vm.expectRevert(refused);
        pause.end();
    }

    // -------------------------------------------------------------------------------------- rotate

    function test_PacksAQuorumOfGoodVotesInOrder() public {
        string memory next = _file(7, bob);
        bytes32 digest = fastPay.committeeVoteDigest(authorities(7), bob);
        string[] memory votes = new string[](4);
        for (uint256 i = 0; i < 4; ++i) {
            votes[i] = _vote(3 - i, 1, digest); // backwards, and one too many
        }
        (Authority[] memory list, address nextGuardian, bytes memory packed) =
            _rotate.prepare(fastPay, next, votes);
        assertEq(abi.encode(list), abi.encode(authorities(7)));
        assertEq(nextGuardian, bob);
        assertEq(packed, votesOf(0, 3, digest));
        fastPay.rotate(list, nextGuardian, packed);
        assertEq(fastPay.epoch(), 1);
    }

    function test_LeavesBadVotesOut() public {
        string memory next = _file(7, bob);
        bytes32 digest = fastPay.committeeVoteDigest(authorities(7), bob);
        string[] memory votes = new string[](5);
        votes[0] = _vote(0, 1, keccak256("another committee"));
        votes[1] = _vote(1, 1, digest);
        votes[2] = _vote(2, 1, digest);
        votes[3] = _vote(9, 1, digest); // who is no member
        votes[4] = _vote(3, 1, digest);
        (,, bytes memory packed) = _rotate.prepare(fastPay, next, votes);
        assertEq(packed, votesOf(1, 3, digest));

        votes[4] = _vote(3, 2, digest); // of another epoch
        vm.expectRevert("only 2 good votes, and 3 are needed");
        _rotate.prepare(fastPay, next, votes);
    }

    function test_KeepsTheGuardianWhereTheFileNamesNone() public view {
        string memory next = string.concat('{"authorities":', _list(4), "}");
        bytes32 digest = fastPay.committeeVoteDigest(authorities(4), OPERATOR);
        string[] memory votes = new string[](3);
        for (uint256 i = 0; i < 3; ++i) {
            votes[i] = _vote(i, 1, digest);
        }
        (, address nextGuardian,) = _rotate.prepare(fastPay, next, votes);
        assertEq(nextGuardian, OPERATOR);
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

        string memory second = string.concat(FOLDER, "next.json");
        vm.writeFile(second, _file(7, bob));
        vm.setEnv("COMMITTEE", second);
        bytes32 digest = fastPay.committeeVoteDigest(authorities(7), bob);
        string memory paths;
        for (uint256 i = 0; i < 3; ++i) {
            string memory path = string.concat(FOLDER, "vote", vm.toString(i), ".json");
            vm.writeFile(path, _vote(i, 1, digest));
            paths = string.concat(paths, i == 0 ? "" : ",", path);
        }
        vm.setEnv("VOTES", paths);
        _rotate.run();
        assertEq(fastPay.epoch(), 1);
        assertEq(fastPay.guardian(), bob);
    }

    // ------------------------------------------------------------------------------------- private

    function _brakes() private pure returns (Brakes memory) {
        return Brakes(1 days, 7 days, 1 days, 10_000, 2 days, 7 days);
    }

    function _file(uint256 size, address guardian_) private view returns (string memory) {
        return _fileWith(size, guardian_, _brakes());
    }

    function _fileWith(uint256 size, address guardian_, Brakes memory brakes)
        private
        view
        returns (string memory)
    {
        string memory times = string.concat(
            '"pauseDuration":',
            vm.toString(brakes.pauseDuration),
            ',"pauseCooldown":',
            vm.toString(brakes.pauseCooldown),
            ',"outflowWindow":',
            vm.toString(brakes.outflowWindow),
            ',"outflowDelay":',
            vm.toString(brakes.outflowDelay)
        );
        string memory rest = string.concat(
            ',"outflowShare":',
            vm.toString(brakes.outflowShare),
            ',"votesValidity":',
            vm.toString(brakes.votesValidity)
        );
        return string.concat(
            '{"chainId":',
            vm.toString(block.chainid),
            ',"authorities":',
            _list(size),
            ',"guardian":"',
            vm.toString(guardian_),
            '","brakes":{',
            times,
            rest,
            "}}"
        );
    }

    /// @dev The first members, backwards.
    function _list(uint256 size) private pure returns (string memory list) {
        Authority[] memory members = authorities(size);
        for (uint256 i = size; i > 0; --i) {
            list = string.concat(
                list,
                i == size ? "[" : ",",
                '{"votingKey":"',
                vm.toString(members[i - 1].votingKey),
                '","redemptionKey":"',
                vm.toString(members[i - 1].redemptionKey),
                '"}'
            );
        }
        return string.concat(list, "]");
    }

    /// @dev As `fastpay-node vote-committee` writes it.
    function _vote(uint256 member, uint256 epoch, bytes32 digest) private pure returns (string memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(memberKey(member), digest);
        return string.concat(
            '{"epoch":',
            vm.toString(epoch),
            ',"authority":"',
            vm.toString(authoritiesFrom(member, 1)[0].votingKey),
            '","signature":"',
            vm.toString(abi.encodePacked(r, s, v)),
            '"}'
        );
    }
}
