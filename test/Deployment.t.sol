// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Committees} from "../contracts/libraries/Committees.sol";
import {FastPayTest} from "./FastPayTest.sol";

contract DeploymentTest is FastPayTest {
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

    function test_AnyTwoQuorumsShareAnHonestMemberAndTheHonestSuffice() public pure {
        for (uint256 n = Committees.SIZE_MIN; n <= Committees.SIZE_MAX; ++n) {
            (uint256 f, uint256 quorum) = ((n - 1) / 3, Committees.quorum(n));
            assertGt(2 * quorum - n, f, vm.toString(n));
            assertLe(quorum, n - f, vm.toString(n));
            if (n == 3 * f + 1) assertEq(quorum, 2 * f + 1);
        }
    }
}
