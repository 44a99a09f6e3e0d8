// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {TreeTest} from "../trees/TreeTest.sol";
import {HostileToken} from "./HostileToken.sol";

/// @title 100 ETH and as much of a token that can turn hostile
abstract contract HostileTest is TreeTest {
    HostileToken internal hostile;

    function setUp() public virtual override {
        super.setUp();
        hostile = _deposited(18);
        fundToken(token, HELD);
    }

    function _deposited(uint8 decimals) internal returns (HostileToken made) {
        made = new HostileToken(decimals);
        made.mint(alice, HELD);
        fundToken(made, HELD);
    }

    function orderOf(address asset, uint128 amount, uint64 sequence)
        internal
        view
        returns (Redemption memory)
    {
        return redemption(asset, amount, amount / 10, sequence);
    }

    /// @dev A call of each external function that changes anything, each of which would go through by itself.
    function callsOfEachFunction(uint64 sequence) internal view returns (bytes[] memory calls) {
        Redemption memory item = order(1 ether, sequence);
        CertifiedRedemption[] memory many = new CertifiedRedemption[](1);
        many[0] = certifiedIn(0, item);
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = item;
        calls = new bytes[](13);
        calls[0] = abi.encodeCall(IFastPay.depositEther, (ACCOUNT));
        calls[1] = abi.encodeCall(IFastPay.depositToken, (ACCOUNT, token, 1));
        calls[2] = abi.encodeCall(IFastPay.depositTokenWithPermit, (ACCOUNT, token, 1, 0, 27, 0, 0));
        calls[3] = abi.encodeCall(IFastPay.redeem, (item, 0, many[0].votes));
        calls[4] = abi.encodeCall(IFastPay.redeemMany, (many));
        calls[5] = abi.encodeCall(IFastPay.redeemBatch, (batch, 0, batchVotes(0, batch)));
        calls[6] = abi.encodeCall(IFastPay.executeQueued, (item, ""));
        calls[7] = abi.encodeCall(IFastPay.claim, (ETHER, alice, 1));
        calls[8] = abi.encodeCall(IFastPay.claimFor, (alice, ETHER, 1));
        calls[9] = abi.encodeCall(IFastPay.releaseQueued, (item, ""));
        calls[10] = abi.encodeCall(IFastPay.pause, ());
        calls[11] = abi.encodeCall(IFastPay.unpause, ());
        calls[12] = ""; // receive
    }
}
