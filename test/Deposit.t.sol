// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {ContractWallet, SenderUnderConstruction} from "./mocks/ContractWallet.sol";
import {MoodyToken, PhantomPermitToken} from "./tokens/WeirdTokens.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

contract DepositTest is FastPayTest {
    function setUp() public override {
        super.setUp();
        vm.deal(alice, 100 ether);
        token.transfer(alice, 1e12);
        vm.prank(alice);
        token.approve(address(fastPay), 1e12);
    }

    // ----------------------------------------------------------------------------------------- ETH

    function test_PlainEtherOfAKeysAccountWithCode() public {
        vm.etch(alice, abi.encodePacked(hex"ef0100", bob)); // as EIP-7702 delegates
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, _accountOf(alice), ETHER, 1 wei, alice);
        vm.prank(alice, alice);
        (bool sent,) = address(fastPay).call{value: 1 wei}("");
        assertTrue(sent);

        vm.expectRevert(abi.encodeWithSelector(IFastPay.SenderWithoutKey.selector, alice));
        vm.prank(alice, relayer); // another pays for the transaction
        (sent,) = address(fastPay).call{value: 1 wei}("");
        assertHolding(ETHER, 1 wei, 0);
    }

    function test_RevertIf_PlainEtherOfAContractUnderConstruction() public {
        vm.prank(alice, alice);
        SenderUnderConstruction sender = new SenderUnderConstruction{value: 1 ether}(address(fastPay));
        assertFalse(sender.sent());
        assertEq(sender.answer(), abi.encodeWithSelector(IFastPay.SenderWithoutKey.selector, sender));
        assertHolding(ETHER, 0, 0);
    }

    function test_AContractDepositsForAnAccount() public {
        ContractWallet wallet = new ContractWallet{value: 1 ether}();
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, ACCOUNT, ETHER, 1 ether, address(wallet));
        vm.prank(alice, alice);
        wallet.execute(address(fastPay), 1 ether, abi.encodeCall(IFastPay.depositEther, (ACCOUNT)));
        assertHolding(ETHER, 1 ether, 0);
    }

    function test_RevertIf_TheRecipientIsTheContract() public {
        vm.expectRevert(IFastPay.RecipientIsContract.selector);
        vm.prank(alice); // whose approval stands in for the permit
        fastPay.depositTokenWithPermit(_accountOf(address(fastPay)), token, 1, block.timestamp, 27, 0, 0);
        // Its own plain ETH, which it cannot send: the last line of defence is the same.
        vm.deal(address(fastPay), 1);
        vm.expectRevert(IFastPay.RecipientIsContract.selector);
        vm.prank(address(fastPay), address(fastPay));
        (bool sent,) = address(fastPay).call{value: 1}("");
        sent; // expectRevert has looked at it
        assertEq(fastPay.lastTransactionIndex(), 0);
    }

    function test_RevertIf_EtherIsAboveWhatFitsAnAmount() public {
        vm.deal(alice, type(uint256).max);
        uint256 value = uint256(type(uint128).max) + 2;
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, ETHER, 0, value, ETHER_CAP)
        );
        vm.prank(alice);
        fastPay.depositEther{value: value}(ACCOUNT);
    }

    // -------------------------------------------------------------------------------------- tokens

    function test_IndicesCountAllDepositsWithoutAGap() public {
        vm.startPrank(alice);
        fastPay.depositEther{value: 1}(ACCOUNT);
        fastPay.depositToken(ACCOUNT, token, 1);
        vm.expectRevert();
        fastPay.depositToken(ACCOUNT, token, 1e13);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(3, ACCOUNT, ETHER, 1, alice);
        fastPay.depositEther{value: 1}(ACCOUNT);
        assertEq(fastPay.lastTransactionIndex(), 3);
    }

    function test_RevertIf_TheAssetIsFastPayItself() public {
        vm.expectRevert();
        fastPay.depositToken(ACCOUNT, IERC20(address(fastPay)), 1);
    }

    function testFuzz_Deposits(uint128 ether_, uint128 tokens, bytes32 recipient) public {
        ether_ = uint128(bound(ether_, 1, ETHER_CAP));
        tokens = uint128(bound(tokens, 1, CAP));
        vm.assume(recipient != 0 && recipient != _accountOf(address(fastPay)));
        deal(alice, ether_);
        token.transfer(alice, tokens);
        vm.startPrank(alice);
        token.approve(address(fastPay), tokens);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, recipient, ETHER, ether_, alice);
        fastPay.depositEther{value: ether_}(recipient);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(2, recipient, address(token), tokens, alice);
        fastPay.depositToken(recipient, token, tokens);
        assertHolding(ETHER, ether_, 0);
        assertHolding(address(token), tokens, 0);
    }

    // ------------------------------------------------------------------------------- weird tokens

    function test_ALyingTokenHarmsNoOther() public {
        fundEther(1 ether);
        MoodyToken moody = new MoodyToken();
        moody.mint(alice, 10);
        moody.setMood(MoodyToken.Mood.ReturnsNothing);
        moody.setFakeBalance(type(uint128).max); // the same before and after: credits what moved
        fundToken(moody, 10);
        assertEq(fastPay.totalBalance(address(moody)), 10);
        assertHolding(ETHER, 1 ether, 0);
        assertHolding(address(token), 0, 0);
    }

    // ------------------------------------------------------------------------------------- permits

    function test_ATokenThatAcceptsAnyPermitTakesOnlyFromTheCaller() public {
        PhantomPermitToken phantom = new PhantomPermitToken();
        phantom.mint(alice, 10);
        vm.prank(alice);
        phantom.approve(address(fastPay), 10);
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(fastPay), 0, 10)
        );
        vm.prank(bob);
        fastPay.depositTokenWithPermit(ACCOUNT, phantom, 10, block.timestamp, 27, 0, 0);
    }

    // ------------------------------------------------------------------------------------- private

    function _accountOf(address owner) private pure returns (bytes32) {
        return bytes32(uint256(uint160(owner)));
    }
}
