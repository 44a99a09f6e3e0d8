// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {AssetCap, Authority, IFastPay, SafetyParameters} from "../contracts/interfaces/IFastPay.sol";
import {Committees} from "../contracts/libraries/Committees.sol";
import {ChainFile} from "../script/ChainFile.sol";
import {FastPayTest} from "./FastPayTest.sol";

contract DeploymentTest is FastPayTest {
    function test_KeepsTheCommittee() public view {
        Authority[] memory kept = fastPay.committee(0);
        Authority[] memory given = authorities(4);
        assertEq(abi.encode(kept), abi.encode(given));
        assertEq(fastPay.epoch(), 0);
    }

    function test_LogsTheCommittee() public {
        vm.expectEmit();
        emit IFastPay.CommitteeInstalled(0, 0, authorities(7), guardian, 0, 0, 0);
        _new(authorities(7));
    }

    function test_StartsEmpty() public view {
        assertEq(fastPay.lastTransactionIndex(), 0);
        assertHolding(ETHER, 0, 0);
        assertEq(fastPay.claimOf(alice, ETHER), 0);
        assertFalse(fastPay.isRedeemed(ACCOUNT, 0));
        assertEq(fastPay.redeemedBitmap(ACCOUNT, 0), 0);
    }

    function test_KnowsItsBlock() public {
        vm.roll(1234);
        assertEq(_new(authorities(4)).deploymentBlock(), 1234);
    }

    function test_NamesItsDomain() public view {
        (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        ) = fastPay.eip712Domain();
        assertEq(fields, bytes1(0x0f));
        assertEq(name, "FastPay");
        assertEq(version, "1");
        assertEq(chainId, block.chainid);
        assertEq(verifyingContract, address(fastPay));
        assertEq(salt, bytes32(0));
        assertEq(extensions.length, 0);
    }

    function test_ComputesTheQuorum() public {
        uint256[2][10] memory sizeAndQuorum = [
            [uint256(4), 3],
            [uint256(5), 4],
            [uint256(6), 4],
            [uint256(7), 5],
            [uint256(9), 6],
            [uint256(10), 7],
            [uint256(20), 14],
            [uint256(45), 30],
            [uint256(100), 67],
            [uint256(255), 170]
        ];
        for (uint256 i = 0; i < sizeAndQuorum.length; ++i) {
            (uint256 size, uint256 quorum) = (sizeAndQuorum[i][0], sizeAndQuorum[i][1]);
            assertEq(_new(authorities(size)).quorum(0), quorum, vm.toString(size));
        }
    }

    function test_AnyTwoQuorumsShareAnHonestMemberAndTheHonestSuffice() public pure {
        for (uint256 n = Committees.SIZE_MIN; n <= Committees.SIZE_MAX; ++n) {
            (uint256 f, uint256 quorum) = ((n - 1) / 3, Committees.quorum(n));
            assertGt(2 * quorum - n, f, vm.toString(n));
            assertLe(quorum, n - f, vm.toString(n));
            if (n == 3 * f + 1) assertEq(quorum, 2 * f + 1);
        }
    }

    /// @dev What it costs is in testkit/tests/testkit/gas_rules.rs.
    function test_KeepsTheLargestCommittee() public {
        Authority[] memory given = authorities(255);
        assertEq(abi.encode(_new(given).committee(0)), abi.encode(given));
    }

    function test_RevertIf_TooFewMembers() public {
        for (uint256 size = 0; size < 4; ++size) {
            vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, size));
            _new(authorities(size));
        }
    }

    function test_RevertIf_TooManyMembers() public {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.InvalidCommitteeSize.selector, 256));
        _new(authorities(256));
    }

    function test_RevertIf_VotingKeysAreUnsorted() public {
        Authority[] memory list = authorities(4);
        (list[1], list[2]) = (list[2], list[1]);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.VotingKeysNotAscending.selector, 2));
        _new(list);
    }

    function test_RevertIf_AVotingKeyIsRepeated() public {
        Authority[] memory list = authorities(4);
        list[3].votingKey = list[2].votingKey;
        vm.expectRevert(abi.encodeWithSelector(IFastPay.VotingKeysNotAscending.selector, 3));
        _new(list);
    }

    function test_RevertIf_AVotingKeyIsZero() public {
        Authority[] memory list = authorities(4);
        list[0].votingKey = 0;
        vm.expectRevert(abi.encodeWithSelector(IFastPay.ZeroKey.selector, 0));
        _new(list);
    }

    function test_RevertIf_ARedemptionKeyIsZero() public {
        Authority[] memory list = authorities(4);
        list[2].redemptionKey = address(0);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.ZeroKey.selector, 2));
        _new(list);
    }

    function test_RevertIf_ARedemptionKeyIsRepeated() public {
        Authority[] memory list = authorities(7);
        list[6].redemptionKey = list[1].redemptionKey;
        vm.expectRevert(abi.encodeWithSelector(IFastPay.RepeatedRedemptionKey.selector, 1, 6));
        _new(list);
    }

    function test_RevertIf_TheEpochIsUnknown() public {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));
        fastPay.committee(1);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));
        fastPay.quorum(1);
    }

    // --------------------------------------------------------------------------------- the safety parameters

    function test_KeepsTheParametersAndTheGuardian() public view {
        assertEq(abi.encode(fastPay.safetyParameters()), abi.encode(defaultParameters()));
        assertEq(fastPay.guardian(), guardian);
        assertEq(fastPay.pausedUntil(), 0);
        assertEq(fastPay.nextPauseAt(), 0);
        assertEq(fastPay.epochValidUntil(0), type(uint256).max);
        assertEq(fastPay.epochValidUntil(1), 0);
    }

    function test_TheGuardianMayBeNobody() public {
        SafetyParameters memory parameters = defaultParameters();
        parameters.outflowDelay = 21 days;
        assertEq(this.create(authorities(4), address(0), parameters).guardian(), address(0));
    }

    /// @dev Each bound is allowed, and what is beyond it is not.
    function test_RevertIf_ABrakeIsOutOfBounds() public {
        _bounds("pauseDuration", 0, 1 hours, 7 days);
        _bounds("pauseCooldown", 1, 7 days, 365 days); // from the pause's duration, which is the longest here
        _bounds("outflowWindow", 2, 1 hours, 7 days);
        _bounds("outflowShare", 3, 100, 10_000);
        _bounds("outflowDelay", 4, 3 days, 30 days);
        _bounds("votesValidity", 5, 14 days, 90 days); // from twice the unlock window
        _bounds("unlockWindow", 6, 3 days, 30 days);
    }

    /// @dev The longest pauses that are allowed, so that no other parameter is at fault than the one in question.
    function _bounds(string memory name, uint256 field, uint256 min, uint256 max) private {
        SafetyParameters memory parameters = defaultParameters();
        (parameters.pauseDuration, parameters.pauseCooldown) = (7 days, 365 days);
        if (field == 6) parameters.votesValidity = 90 days;
        uint256[4] memory values = [min, max, min - 1, max + 1];
        for (uint256 i = 0; i < 4; ++i) {
            bytes memory encoded = abi.encode(parameters);
            uint256 value = values[i];
            assembly {
                mstore(add(add(encoded, 0x20), mul(field, 0x20)), value)
            }
            if (i >= 2) {
                vm.expectRevert(
                    abi.encodeWithSelector(IFastPay.InvalidSafetyParameter.selector, name, value, min, max)
                );
            }
            this.create(authorities(4), guardian, abi.decode(encoded, (SafetyParameters)));
        }
    }

    function _new(Authority[] memory list) private returns (IFastPay) {
        return this.create(list, guardian, defaultParameters());
    }

    /// @dev A call of its own, so that its revert can be expected.
    function create(Authority[] memory list, address guardian_, SafetyParameters memory parameters)
        external
        returns (IFastPay)
    {
        bytes memory creation = bytes.concat(
            vm.getCode("FastPay.sol:FastPay"),
            abi.encode(list, guardian_, deployCouncil(), parameters, new AssetCap[](0))
        );
        address deployed;
        assembly ("memory-safe") {
            deployed := create(0, add(creation, 0x20), mload(creation))
            if iszero(deployed) {
                returndatacopy(0, 0, returndatasize())
                revert(0, returndatasize())
            }
        }
        return IFastPay(payable(deployed));
    }

    // --------------------------------------------------------------------------------- the script

    function test_TheScriptSortsTheCommittee() public {
        string memory path = string.concat(vm.projectRoot(), "/target/forge/committee.json");
        vm.createDir(string.concat(vm.projectRoot(), "/target/forge"), true);
        Authority[] memory given = authorities(5);
        string memory list;
        for (uint256 i = 0; i < 5; ++i) {
            Authority memory one = given[(i * 3 + 2) % 5];
            list = string.concat(
                list,
                i == 0 ? "" : ",",
                '{"votingKey":"',
                vm.toString(one.votingKey),
                '","redemptionKey":"',
                vm.toString(one.redemptionKey),
                '"}'
            );
        }
        vm.writeFile(path, string.concat('{"authorities":[', list, "]}"));
        assertEq(abi.encode(ChainFile.authorities(vm.readFile(path))), abi.encode(given));
    }
}
