// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {ContractWallet, SenderUnderConstruction} from "./mocks/ContractWallet.sol";
import {DemoToken} from "./tokens/DemoToken.sol";
import {CallbackToken, FeeToken, MoodyToken, PhantomPermitToken} from "./tokens/WeirdTokens.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

contract DepositTest is FastPayTest {
    function setUp() public override {
        super.setUp();
        vm.deal(alice, 100 ether);
        token.transfer(alice, 1e12);
        vm.prank(alice);
        token.approve(address(fastPay), 1e12);
    }

    // ----------------------------------------------------------------------------------------- ETH

    function test_EtherFundsTheRecipient() public {
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, ACCOUNT, ETHER, 3 ether, alice);
        vm.prank(alice);
        fastPay.depositEther{value: 3 ether}(ACCOUNT);
        assertHolding(ETHER, 3 ether, 0);
        assertEq(address(fastPay).balance, 3 ether);
    }

    function test_PlainEtherFundsTheSendersOwnAccount() public {
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, _accountOf(alice), ETHER, 1 wei, alice);
        vm.prank(alice, alice);
        (bool sent,) = address(fastPay).call{value: 1 wei}("");
        assertTrue(sent);
        assertHolding(ETHER, 1 wei, 0);
    }

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

    function test_RevertIf_PlainEtherOfAContract() public {
        ContractWallet wallet = new ContractWallet{value: 1 ether}();
        vm.expectRevert(abi.encodeWithSelector(IFastPay.SenderWithoutKey.selector, wallet));
        vm.prank(alice, alice);
        wallet.execute(address(fastPay), 1 ether, "");
        assertEq(address(wallet).balance, 1 ether);
        assertHolding(ETHER, 0, 0);
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
        bytes32 own = _accountOf(address(fastPay));
        (uint256 key, address owner) = _permitOwner();
        (uint8 v, bytes32 r, bytes32 s) = _permit(key, owner, 1);
        vm.startPrank(alice);
        vm.expectRevert(IFastPay.RecipientIsContract.selector);
        fastPay.depositEther{value: 1}(own);
        vm.expectRevert(IFastPay.RecipientIsContract.selector);
        fastPay.depositToken(own, token, 1);
        vm.stopPrank();
        vm.expectRevert(IFastPay.RecipientIsContract.selector);
        vm.prank(owner);
        fastPay.depositTokenWithPermit(own, token, 1, block.timestamp, v, r, s);
        // Its own plain ETH, which it cannot send: the last line of defence is the same.
        vm.deal(address(fastPay), 1);
        vm.expectRevert(IFastPay.RecipientIsContract.selector);
        vm.prank(address(fastPay), address(fastPay));
        (bool sent,) = address(fastPay).call{value: 1}("");
        sent; // expectRevert has looked at it
        assertEq(fastPay.lastTransactionIndex(), 0);
    }

    function test_RevertIf_EtherWithAnUnknownCall() public {
        vm.prank(alice);
        (bool sent,) = address(fastPay).call{value: 1}(hex"12345678");
        assertFalse(sent);
    }

    function test_EtherUpToTheCap() public {
        vm.deal(alice, type(uint256).max);
        vm.startPrank(alice);
        fastPay.depositEther{value: ETHER_CAP - 1}(ACCOUNT);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, ETHER, ETHER_CAP - 1, 2, ETHER_CAP)
        );
        fastPay.depositEther{value: 2}(ACCOUNT);
        fastPay.depositEther{value: 1}(ACCOUNT);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, ETHER, ETHER_CAP, 1, ETHER_CAP)
        );
        fastPay.depositEther{value: 1}(ACCOUNT);
        vm.stopPrank();
        assertHolding(ETHER, ETHER_CAP, 0);
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

    function test_ForcedEtherFundsNobody() public {
        vm.deal(address(fastPay), 5 ether);
        assertHolding(ETHER, 0, 0);
        assertEq(fastPay.lastTransactionIndex(), 0);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, ACCOUNT, ETHER, 1 ether, alice);
        vm.prank(alice);
        fastPay.depositEther{value: 1 ether}(ACCOUNT);
        assertHolding(ETHER, 1 ether, 0);
    }

    // -------------------------------------------------------------------------------------- tokens

    function test_TokensFundTheRecipient() public {
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, ACCOUNT, address(token), 5e6, alice);
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, token, 5e6);
        assertHolding(address(token), 5e6, 0);
        assertEq(token.balanceOf(address(fastPay)), 5e6);
    }

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

    function test_TokensThatWereThereBeforeFundNobody() public {
        token.transfer(address(fastPay), 77);
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, token, 5);
        assertHolding(address(token), 5, 0);
    }

    function test_RevertIf_ZeroTokens() public {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NothingReceived.selector, address(token)));
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, token, 0);
    }

    function test_RevertIf_TheAssetIsFastPayItself() public {
        vm.expectRevert();
        fastPay.depositToken(ACCOUNT, IERC20(address(fastPay)), 1);
    }

    function test_RevertIf_MoreTokensThanTheCap() public {
        token.transfer(alice, uint256(CAP) * 2);
        vm.startPrank(alice);
        token.approve(address(fastPay), type(uint256).max);
        fastPay.depositToken(ACCOUNT, token, CAP);
        vm.expectRevert(
            abi.encodeWithSelector(IFastPay.AssetCapExceeded.selector, address(token), CAP, 1, CAP)
        );
        fastPay.depositToken(ACCOUNT, token, 1);
        fastPay.depositEther{value: 1}(ACCOUNT); // another asset is not concerned
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

    function test_CreditsWhatArrivesOfATokenThatTakesAFee() public {
        FeeToken fee = new FeeToken();
        fee.mint(alice, 1000);
        vm.startPrank(alice);
        fee.approve(address(fastPay), 1000);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, ACCOUNT, address(fee), 990, alice);
        fastPay.depositToken(ACCOUNT, fee, 1000);
        assertHolding(address(fee), 990, 0);
    }

    function test_CreditsATokenThatReturnsNothing() public {
        MoodyToken moody = _moody(MoodyToken.Mood.ReturnsNothing);
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, moody, 10);
        assertHolding(address(moody), 10, 0);
    }

    function test_RevertIf_TheTokenReverts() public {
        MoodyToken moody = _moody(MoodyToken.Mood.Reverts);
        vm.expectRevert();
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, moody, 10);
    }

    function test_RevertIf_TheTokenCallsBackToDepositAgain() public {
        _callbackDeposit(abi.encodeCall(IFastPay.depositToken, (ACCOUNT, token, 1)));
    }

    function test_RevertIf_TheTokenCallsBackToClaim() public {
        _callbackDeposit(abi.encodeCall(IFastPay.claim, (ETHER, bob, 1)));
    }

    function test_ALyingTokenHarmsNoOther() public {
        fundEther(1 ether);
        MoodyToken moody = _moody(MoodyToken.Mood.ReturnsNothing);
        moody.setFakeBalance(type(uint128).max); // the same before and after: credits what moved
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, moody, 10);
        assertEq(fastPay.totalBalance(address(moody)), 10);
        assertHolding(ETHER, 1 ether, 0);
        assertHolding(address(token), 0, 0);
    }

    // ------------------------------------------------------------------------------------- permits

    function test_APermitReplacesTheApproval() public {
        (uint256 key, address owner) = _permitOwner();
        (uint8 v, bytes32 r, bytes32 s) = _permit(key, owner, 50);
        vm.expectEmit(address(fastPay));
        emit IFastPay.Funded(1, ACCOUNT, address(token), 50, owner);
        vm.prank(owner);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 50, block.timestamp, v, r, s);
        assertHolding(address(token), 50, 0);
    }

    function test_APermitThatWasFrontRunIsNoHarm() public {
        (uint256 key, address owner) = _permitOwner();
        (uint8 v, bytes32 r, bytes32 s) = _permit(key, owner, 50);
        vm.prank(relayer); // anyone
        token.permit(owner, address(fastPay), 50, block.timestamp, v, r, s);
        vm.prank(owner);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 50, block.timestamp, v, r, s);
        assertHolding(address(token), 50, 0);
    }

    function test_RevertIf_ThePermitIsAnothers() public {
        (uint256 key, address owner) = _permitOwner();
        (uint8 v, bytes32 r, bytes32 s) = _permit(key, owner, 50);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PermitRefused.selector, address(token), 0, 50));
        vm.prank(bob);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 50, block.timestamp, v, r, s);
    }

    function test_RevertIf_ThePermitIsForLess() public {
        (uint256 key, address owner) = _permitOwner();
        (uint8 v, bytes32 r, bytes32 s) = _permit(key, owner, 50);
        vm.prank(owner);
        token.approve(address(fastPay), 50);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PermitRefused.selector, address(token), 50, 51));
        vm.prank(owner);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 51, block.timestamp, v, r, s);
    }

    function test_RevertIf_ThePermitHasExpired() public {
        (uint256 key, address owner) = _permitOwner();
        (uint8 v, bytes32 r, bytes32 s) = _permit(key, owner, 50);
        uint256 deadline = block.timestamp;
        vm.warp(deadline + 1);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.PermitRefused.selector, address(token), 0, 50));
        vm.prank(owner);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 50, deadline, v, r, s);
    }

    function test_RevertIf_AZeroPermit() public {
        vm.expectRevert(abi.encodeWithSelector(IFastPay.NothingReceived.selector, address(token)));
        vm.prank(alice);
        fastPay.depositTokenWithPermit(ACCOUNT, token, 0, 0, 27, 0, 0);
    }

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

    function _moody(MoodyToken.Mood mood) private returns (MoodyToken moody) {
        moody = new MoodyToken();
        moody.mint(alice, 10);
        vm.prank(alice);
        moody.approve(address(fastPay), 10);
        moody.setMood(mood);
    }

    /// @dev A token calls FastPay with `data` during its own deposit: that call fails, the deposit does not.
    function _callbackDeposit(bytes memory data) private {
        CallbackToken caller = new CallbackToken();
        caller.mint(alice, 10);
        caller.setCallback(address(fastPay), data);
        vm.startPrank(alice);
        caller.approve(address(fastPay), 10);
        fastPay.depositToken(ACCOUNT, caller, 10);
        assertTrue(caller.called());
        assertFalse(caller.succeeded());
        assertEq(bytes4(caller.answer()), ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
        assertHolding(address(caller), 10, 0);
        assertEq(fastPay.lastTransactionIndex(), 1);
    }

    function _permitOwner() private returns (uint256 key, address owner) {
        key = 0xa11ce;
        owner = vm.addr(key);
        token.transfer(owner, 1000);
    }

    function _permit(uint256 key, address owner, uint256 value)
        private
        view
        returns (uint8 v, bytes32 r, bytes32 s)
    {
        bytes32 typeHash = keccak256(
            "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
        );
        bytes32 structHash = keccak256(
            abi.encode(typeHash, owner, address(fastPay), value, token.nonces(owner), block.timestamp)
        );
        return vm.sign(key, keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), structHash)));
    }
}
