// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil, Outcome} from "../../contracts/interfaces/ICouncil.sol";
import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";
import {Votes} from "../../contracts/libraries/Votes.sol";
import {UnlockTest} from "./UnlockTest.sol";

contract RequestUnlockTreeTest is UnlockTest {
    /// @dev The order of secp256k1's group.
    uint256 private constant ORDER = 2 * Votes.S_MAX + 1;

    function test_RevertGiven_TheNumberIsUpheld() external {
        request(7);
        uphold(7);
        _fails(0, ACCOUNT, "", abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
    }

    function test_RevertGiven_TheNumberIsVoided() external {
        request(7);
        voidNumber(7);
        _fails(0, ACCOUNT, "", abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
        installAfterTheft();
        _fails(0, ACCOUNT, "", abi.encodeWithSelector(ICouncil.AlreadyDecided.selector, ACCOUNT, 7));
    }

    function test_RevertWhen_TheAuthorizationIsLongerThan512Bytes() external {
        bytes memory tooLong = abi.encodeWithSelector(ICouncil.AuthorizationTooLong.selector, 513, 512);
        _fails(BOND, ACCOUNT, new bytes(513), tooLong);
        vm.deal(alice, BOND);
        vm.prank(alice);
        council.requestUnlock{value: BOND}(ACCOUNT, 7, new bytes(512));
    }

    function test_RevertWhen_TheAccountIsAnEthereumAddressAndAStrangerCalls() external {
        bytes memory refused = abi.encodeWithSelector(ICouncil.NotOwner.selector, ownAccount);
        _fails(BOND, ownAccount, "", refused);
        _fails(BOND, ownAccount, new bytes(64), refused);
        _fails(BOND, ownAccount, new bytes(65), refused);
        // The signature for another number.
        _fails(BOND, ownAccount, signedRequest(ownAccount, 8), refused);
        // A byte too many.
        _fails(BOND, ownAccount, bytes.concat(signedRequest(ownAccount, 7), hex"00"), refused);
    }

    function test_RevertWhen_TheSignatureIsOneOfAnotherKey() external {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(1, council.unlockRequestDigest(ownAccount, 7));
        bytes memory refused = abi.encodeWithSelector(ICouncil.NotOwner.selector, ownAccount);
        _fails(BOND, ownAccount, abi.encodePacked(r, s, v), refused);
    }

    function test_RevertWhen_TheSignatureHasAHighS() external {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(OWNER_KEY, council.unlockRequestDigest(ownAccount, 7));
        bytes memory twin = abi.encodePacked(r, bytes32(ORDER - uint256(s)), 55 - v);
        _fails(BOND, ownAccount, twin, abi.encodeWithSelector(ICouncil.NotOwner.selector, ownAccount));
    }

    function test_RevertWhen_TheAccountIsZero() external {
        // What nobody can have signed.
        _fails(BOND, 0, new bytes(65), abi.encodeWithSelector(ICouncil.NotOwner.selector, bytes32(0)));
    }

    function test_RevertGiven_TheOwnerOfAnEthereumAddressHasRequestedIt() external {
        bytes memory signed = signedRequest(ownAccount, 7);
        vm.deal(alice, BOND);
        vm.prank(alice);
        council.requestUnlock{value: BOND}(ownAccount, 7, signed);
        bytes memory again = abi.encodeWithSelector(ICouncil.AlreadyRequested.selector, ownAccount, 7);
        _fails(BOND, ownAccount, signed, again);
        _fails(0, ownAccount, signed, again);
    }

    function test_RevertWhen_TheFirstRequestComesWithoutTheBond() external {
        for (uint256 i = 0; i < 3; ++i) {
            uint256 sent = [0, BOND - 1, BOND + 1][i];
            _fails(sent, ACCOUNT, "", abi.encodeWithSelector(ICouncil.WrongBond.selector, sent, BOND));
        }
    }

    function test_RevertWhen_AFurtherRequestComesWithABond() external {
        request(7);
        _fails(BOND, ACCOUNT, "", abi.encodeWithSelector(ICouncil.WrongBond.selector, BOND, 0));
    }

    function test_WhenTheOwnerOfAnEthereumAddressCalls() external {
        vm.deal(owner, BOND);
        _expectRequested(2, ownAccount, "");
        vm.prank(owner);
        council.requestUnlock{value: BOND}(ownAccount, 7, "");
        assertEq(address(council).balance, BOND);
        (Outcome outcome, uint256 voidableFrom, address payer) = council.unlockOf(ownAccount, 7);
        assertTrue(outcome == Outcome.None);
        assertEq(voidableFrom, vm.getBlockTimestamp() + WINDOW);
        assertEq(payer, owner);
    }

    function test_WhenSomebodyBringsTheSignatureOfAnEthereumAddress() external {
        bytes memory signed = signedRequest(ownAccount, 7);
        vm.deal(relayer, BOND);
        _expectRequested(2, ownAccount, signed);
        vm.prank(relayer);
        council.requestUnlock{value: BOND}(ownAccount, 7, signed);
        (,, address payer) = council.unlockOf(ownAccount, 7);
        assertEq(payer, relayer);
    }

    function test_WhenSomebodyAsksForAnotherAccount() external {
        _expectRequested(2, ACCOUNT, "signed");
        request(7);
        assertEq(address(council).balance, BOND);
        assertUnlock(7, Outcome.None, relayer);
        assertEq(fastPay.lastTransactionIndex(), 2);
    }

    function test_WhenSomebodyElseAsksForItAgain() external {
        request(7);
        (, uint256 voidableFrom,) = council.unlockOf(ACCOUNT, 7);
        wait(1 days);
        _expectRequested(3, ACCOUNT, "by the owner");
        vm.prank(alice);
        council.requestUnlock(ACCOUNT, 7, "by the owner");
        (, uint256 afterwards, address payer) = council.unlockOf(ACCOUNT, 7);
        assertEq(afterwards, voidableFrom);
        assertEq(payer, relayer);
    }

    function test_GivenTheContractIsPaused() external {
        pause();
        _expectRequested(2, ACCOUNT, "signed");
        request(7);
    }

    function test_GivenTheOrderWasUpheldWithStolenKeys() external {
        request(7);
        uphold(7);
        installAfterTheft();
        _expectRequested(5, ACCOUNT, "again");
        vm.prank(alice);
        council.requestUnlock(ACCOUNT, 7, "again");
    }

    function _expectRequested(uint64 index, bytes32 account, bytes memory authorization) private {
        vm.expectEmit(address(fastPay));
        emit IFastPay.UnlockRequested(index, account, 7, vm.getBlockTimestamp() + WINDOW, authorization);
    }

    function _fails(uint256 value, bytes32 account, bytes memory authorization, bytes memory revertData)
        private
    {
        vm.deal(alice, value);
        vm.expectRevert(revertData);
        vm.prank(alice);
        council.requestUnlock{value: value}(account, 7, authorization);
    }
}
