// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient} from "../mocks/Recipients.sol";
import {HostileTest} from "./HostileTest.sol";
import {HostileToken} from "./HostileToken.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title Each asset stands alone
/// @notice The same deposits, redemptions, queues and claims of ETH and of a good token run twice, with and without a
/// hostile token between them. All that there is to know of the good ones must be the same after both.
contract IsolationTest is HostileTest {
    bytes32 private constant OTHER = keccak256("the account that uses the hostile token");

    MoodyRecipient private _refuser;

    function setUp() public override {
        super.setUp();
        _refuser = new MoodyRecipient(MoodyRecipient.Mood.Reverts);
    }

    function test_AHostileTokenChangesNothingForOthers() public {
        for (uint256 i = 1; i <= uint256(type(HostileToken.Harm).max); ++i) {
            checkHarm(HostileToken.Harm(i), 0, 1000);
        }
    }

    /// forge-config: default.fuzz.runs = 32
    function testFuzz_AHostileTokenChangesNothingForOthers(uint256 harm, uint256 turnsAt, uint128 amount)
        public
    {
        harm = bound(harm, 1, uint256(type(HostileToken.Harm).max));
        checkHarm(HostileToken.Harm(harm), turnsAt % 6, uint128(bound(amount, 10, 2 * LIMIT)));
    }

    function checkHarm(HostileToken.Harm harm, uint256 turnsAt, uint128 amount) private {
        uint256 state = vm.snapshotState();
        _scenario(HostileToken.Harm.None, type(uint256).max, 0);
        bytes memory without = _allThatIsKnown();
        vm.revertToState(state);
        _scenario(harm, turnsAt, amount);
        assertEq(_allThatIsKnown(), without);
        vm.revertToState(state);
    }

    /// @dev Before each of its steps the hostile token does all that it can.
    function _scenario(HostileToken.Harm harm, uint256 turnsAt, uint128 amount) private {
        _interfere(0, harm, turnsAt, amount);
        redeem(order(2 ether, 0));
        _interfere(1, harm, turnsAt, amount);
        redeem(orderOf(address(token), 3 ether, 1));
        _interfere(2, harm, turnsAt, amount);
        enqueue(2);
        Redemption memory refused = order(1 ether, 3);
        refused.recipient = address(_refuser);
        redeem(refused);
        _interfere(3, harm, turnsAt, amount);
        wait(3 days);
        fastPay.executeQueued(order(2 * LIMIT, 2), "");
        _interfere(4, harm, turnsAt, amount);
        _refuser.claim(fastPay, ETHER, alice, 0.9 ether);
        fundToken(token, 5);
        _interfere(5, harm, turnsAt, amount);
        fundEther(1 ether);
    }

    function _interfere(uint64 step, HostileToken.Harm harm, uint256 turnsAt, uint128 amount) private {
        if (amount == 0) return;
        if (step >= turnsAt) {
            if (harm == HostileToken.Harm.CallsBack) {
                hostile.setCallbacks(address(fastPay), callsOfEachFunction(500 + step));
            } else {
                hostile.turn(harm);
            }
            hostile.blockAddress(step % 2 == 0 ? address(fastPay) : bob, true);
        }
        hostile.mint(bob, amount);
        vm.startPrank(bob);
        _try(address(hostile), abi.encodeCall(IERC20.approve, (address(fastPay), amount)));
        _try(address(fastPay), abi.encodeCall(IFastPay.depositToken, (OTHER, IERC20(hostile), amount)));
        vm.stopPrank();
        Redemption memory item = orderOf(address(hostile), amount, 10 + step);
        item.sender = OTHER;
        CertifiedRedemption memory certificate = certifiedIn(0, item);
        _try(address(fastPay), abi.encodeCall(IFastPay.redeem, (item, 0, certificate.votes)));
        // In a bundle with itself: again, so it is skipped.
        CertifiedRedemption[] memory many = new CertifiedRedemption[](1);
        many[0] = certificate;
        _try(address(fastPay), abi.encodeCall(IFastPay.redeemMany, (many)));
        _try(address(fastPay), abi.encodeCall(IFastPay.executeQueued, (item, "")));
        vm.prank(bob);
        _try(address(fastPay), abi.encodeCall(IFastPay.claim, (address(hostile), bob, 1)));
    }

    function _try(address target, bytes memory call) private {
        (bool success,) = target.call{gas: 3_000_000}(call);
        success; // whatever comes of it
    }

    /// @dev Of both good assets, and of everybody who has to do with them.
    function _allThatIsKnown() private view returns (bytes memory known) {
        address[2] memory assets = [ETHER, address(token)];
        address[6] memory people = [alice, bob, relayer, address(_refuser), address(fastPay), guardian];
        for (uint256 i = 0; i < 2; ++i) {
            known = abi.encode(
                known,
                fastPay.totalBalance(assets[i]),
                fastPay.totalClaims(assets[i]),
                fastPay.totalQueued(assets[i]),
                fastPay.outflowAvailable(assets[i])
            );
            for (uint256 j = 0; j < people.length; ++j) {
                uint256 held = i == 0 ? people[j].balance : token.balanceOf(people[j]);
                known = abi.encode(known, held, fastPay.claimOf(people[j], assets[i]));
            }
        }
        for (uint64 sequence = 0; sequence < 4; ++sequence) {
            (uint256 executableAt, address by,,) = fastPay.queued(ACCOUNT, sequence);
            known = abi.encode(known, executableAt, by);
        }
        known = abi.encode(known, fastPay.redeemedBitmap(ACCOUNT, 0), fastPay.redeemedBitmap(ACCOUNT, 1));
        known = abi.encode(known, fastPay.epoch(), fastPay.guardian(), fastPay.pausedUntil());
    }
}
