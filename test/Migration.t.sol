// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {Deploy} from "../script/Deploy.s.sol";
import {Verify} from "../script/Verify.s.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {OperatorFiles} from "./OperatorFiles.sol";
import {Splitter} from "./mocks/Recipients.sol";
import {CouncilTest} from "./trees/CouncilTest.sol";

/// @title Everybody moves to a new contract, as docs/CONTRACT.md says
/// @notice Both contracts have committees of their own and run side by side. Accounts move one by one.
contract MigrationTest is CouncilTest, OperatorFiles {
    IFastPay private _old;
    IFastPay private _new;

    function setUp() public override(CouncilTest, FastPayTest) {
        super.setUp();
        fundToken(token, 1000);
        _old = fastPay;
        // 1. The new contract and its council, as operators deploy and verify them.
        string memory file = string.concat('{"authorities":', listOf(authorities(7)), "}");
        _new = new Deploy().deploy(file, guardian);
        new Verify().verify(file, address(_new));
    }

    function test_EverybodyMoves() public {
        // 2. Certificates of the one are worth nothing on the other.
        Redemption memory item = order(1 ether, 0);
        bytes memory votes = certify(item);
        fastPay = _new;
        vm.deal(alice, 1 ether);
        fundEther(1 ether);
        vm.expectRevert();
        _new.redeem(item, 0, votes);
        fastPay = _old;

        // 3. An owner redeems to its own address, and deposits from there.
        redeem(redemption(ETHER, LIMIT, 0, 1));
        vm.prank(bob, bob);
        (bool success,) = address(_new).call{value: bob.balance}("");
        assertTrue(success);
        assertEq(_new.totalBalance(ETHER), LIMIT + 1 ether);
        redeem(redemption(address(token), 100, 0, 2));
        vm.startPrank(bob);
        token.approve(address(_new), 100);
        _new.depositToken(bytes32(uint256(uint160(bob))), token, 100);
        vm.stopPrank();
        assertEq(_new.totalBalance(address(token)), 100);

        // Straight to the new contract it would be lost, so wallets warn.
        Redemption memory mistake = redemption(ETHER, 1 wei, 0, 3);
        mistake.recipient = address(_new);
        wait(1 days);
        redeem(mistake);
        assertEq(_old.claimOf(address(_new), ETHER), 1 wei);

        // 4. Large amounts wait, in whole.
        Redemption memory ether_ = redemption(ETHER, HELD - LIMIT - 1 - 5 ether, 0, 4);
        Redemption memory tokens = redemption(address(token), 900, 0, 5);
        redeem(ether_);
        redeem(tokens);
        assertEq(_old.totalQueued(ETHER), ether_.amount);
        wait(3 days);
        _old.executeQueued(ether_, "");
        _old.executeQueued(tokens, "");

        // 6. The last one cannot claim for itself.
        Redemption memory last = redemption(ETHER, 5 ether, 0, 6);
        last.recipient = address(new Splitter(6));
        redeem(last);
        wait(3 days);
        _old.executeQueued(last, "");
        _old.claimFor(last.recipient, ETHER, 5 ether);
        assertEq(last.recipient.balance, 5 ether);

        // 5. Nothing is left but the mistake.
        assertEq(_old.totalBalance(ETHER) + _old.totalQueued(ETHER) + _old.totalBalance(address(token)), 0);
        assertEq(_old.totalClaims(ETHER), 1 wei);
        assertEq(address(_old).balance, 1 wei);
        assertEq(token.balanceOf(address(_old)), 0);
    }

    /// @dev The old committee can be replaced while people move, and the guardian still pauses: nothing is switched off.
    function test_TheOldContractGoesOn() public {
        installEndorsed(announcementOfNext());
        Redemption memory item = order(1 ether, 0);
        _old.redeem(item, 1, certifyIn(1, item));
        assertEq(bob.balance, 0.9 ether);
    }
}
