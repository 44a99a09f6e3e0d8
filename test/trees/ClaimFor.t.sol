// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient, Splitter} from "../mocks/Recipients.sol";
import {MoodyToken} from "../tokens/WeirdTokens.sol";
import {TreeTest} from "./TreeTest.sol";

contract ClaimForTreeTest is TreeTest {
    MoodyRecipient private _owner;

    function setUp() public override {
        super.setUp();
        _owner = claimant(0);
        _owner.setMood(MoodyRecipient.Mood.Accepts);
    }

    function test_RevertGiven_TheContractIsPaused() external {
        _fails(address(_owner), 1, pause());
    }

    function test_RevertGiven_TheOwnerHasNoClaimOfTheAsset() external {
        _fails(bob, 1, abi.encodeWithSelector(IFastPay.NothingToClaim.selector, bob, ETHER));
    }

    function test_RevertWhen_TheAmountIsMoreThanTheClaim() external {
        _fails(
            address(_owner),
            1 ether + 1,
            abi.encodeWithSelector(
                IFastPay.InvalidClaimAmount.selector, address(_owner), ETHER, 1 ether, 1 ether + 1
            )
        );
    }

    function test_RevertWhen_TheOwnerRefusesAgain() external {
        _owner.setMood(MoodyRecipient.Mood.Reverts);
        _fails(
            address(_owner),
            1 ether,
            abi.encodeWithSelector(IFastPay.ClaimRefused.selector, address(_owner), ETHER, 1 ether)
        );
        assertEq(fastPay.claimOf(address(_owner), ETHER), 1 ether);
    }

    function test_WhenTheOwnerNeedsMoreGasThanAPayoutGives() external {
        Redemption memory item = redemption(ETHER, 1 ether, 0, 1);
        item.recipient = address(new Splitter(8));
        redeem(item);
        assertEq(fastPay.claimOf(item.recipient, ETHER), 1 ether);
        vm.prank(relayer);
        fastPay.claimFor(item.recipient, ETHER, 1 ether);
        assertEq(item.recipient.balance, 1 ether);
        assertHolding(ETHER, HELD - 2 ether, 1 ether);
    }

    function test_GivenTheTokenPaidOutAllOfItsClaims() external {
        MoodyToken moody = new MoodyToken();
        moody.mint(alice, 1000);
        fundToken(moody, 1000);
        moody.setMood(MoodyToken.Mood.Reverts);
        redeem(redemption(address(moody), 100, 0, 1));
        moody.setMood(MoodyToken.Mood.Good);
        fastPay.claimFor(bob, address(moody), 99);
        assertTrue(_noted(address(moody)));
        fastPay.claimFor(bob, address(moody), 1);
        assertFalse(_noted(address(moody)));
        assertEq(moody.balanceOf(bob), 100);
        assertHolding(address(moody), 900, 0);
    }

    function test_WhenAnyonePaysAPartOfTheClaim() external {
        vm.expectEmit(address(fastPay));
        emit IFastPay.Claimed(address(_owner), ETHER, address(_owner), 0.3 ether);
        vm.prank(relayer);
        fastPay.claimFor(address(_owner), ETHER, 0.3 ether);
        assertEq(address(_owner).balance, 0.3 ether);
        assertEq(relayer.balance, 0);
        assertEq(fastPay.claimOf(address(_owner), ETHER), 0.7 ether);
        assertHolding(ETHER, HELD - 1 ether, 0.7 ether);
    }

    /// @dev Whether the token's slot says that there are claims.
    function _noted(address asset) private view returns (bool) {
        bytes32 slot = keccak256(abi.encode(asset, HOLDINGS_SLOT));
        return uint256(vm.load(address(fastPay), slot)) & (1 << 192) != 0;
    }

    function _fails(address owner, uint256 amount, bytes memory revertData) private {
        vm.expectRevert(revertData);
        fastPay.claimFor(owner, ETHER, amount);
    }
}
