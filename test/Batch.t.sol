// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";

/// @title Many redemptions under one quorum's votes
contract BatchTest is FastPayTest {
    uint256 private constant WHOLE_CALL = type(uint256).max;

    function setUp() public override {
        super.setUp();
        fundEther(10 ether);
        fundToken(token, 1000);
    }

    function test_PaysAll() public {
        Redemption[] memory batch = _batch();
        bytes memory votes = _votes(batch);
        for (uint64 i = 0; i < 3; ++i) {
            expectRedeemed(batch[i], 3 + i);
        }
        vm.prank(relayer);
        fastPay.redeemBatch(batch, 0, votes);
        assertEq(bob.balance, 2.8 ether);
        assertEq(relayer.balance, 0.2 ether);
        assertEq(token.balanceOf(bob), 9);
        assertEq(token.balanceOf(relayer), 1);
        assertHolding(ETHER, 7 ether, 0);
        assertHolding(address(token), 990, 0);
    }

    function test_TheDigestIsThatOfEIP712() public view {
        Redemption[] memory batch = _batch();
        bytes32[] memory hashes = new bytes32[](3);
        for (uint256 i = 0; i < 3; ++i) {
            hashes[i] = vm.eip712HashStruct(
                "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,uint128 fee,uint64 sequence,bytes32 memo)",
                abi.encode(batch[i])
            );
        }
        bytes32 structHash = keccak256(
            abi.encode(
                keccak256("RedemptionBatchVote(uint64 epoch,bytes32 redemptionsHash)"),
                uint64(5),
                keccak256(abi.encodePacked(hashes))
            )
        );
        assertEq(fastPay.redemptionBatchVoteDigest(5, batch), digestOf(structHash));
    }

    function test_PaysABatchOfOne() public {
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = redemption(ETHER, 1 ether, 0, 3);
        fastPay.redeemBatch(batch, 0, _votes(batch));
        assertEq(bob.balance, 1 ether);
    }

    function test_SkipsWhatIsRedeemedAlready() public {
        Redemption[] memory batch = _batch();
        bytes memory votes = _votes(batch);
        redeem(batch[0]);
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, batch[0].sequence);
        vm.prank(relayer);
        fastPay.redeemBatch(batch, 0, votes);
        assertEq(bob.balance, 2.8 ether);
        assertHolding(ETHER, 7 ether, 0);
        // And all of it, when it is sent again.
        fastPay.redeemBatch(batch, 0, votes);
        assertHolding(ETHER, 7 ether, 0);
    }

    function test_PaysARepeatedItemOnce() public {
        Redemption[] memory batch = new Redemption[](2);
        batch[0] = batch[1] = redemption(ETHER, 1 ether, 0, 3);
        bytes memory votes = _votes(batch);
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionSkipped(ACCOUNT, 3);
        fastPay.redeemBatch(batch, 0, votes);
        assertEq(bob.balance, 1 ether);
    }

    function test_RevertIf_TheBatchIsEmpty() public {
        Redemption[] memory batch = new Redemption[](0);
        bytes memory votes = _votes(batch);
        vm.expectRevert(IFastPay.EmptyBatch.selector);
        fastPay.redeemBatch(batch, 0, votes);
    }

    function test_RevertIf_TheOrderIsAnother() public {
        Redemption[] memory batch = _batch();
        bytes memory votes = _votes(batch);
        (batch[0], batch[2]) = (batch[2], batch[0]);
        _wrongSigner(batch, votes);
    }

    function test_RevertIf_AnItemIsMissingOrAltered() public {
        Redemption[] memory batch = _batch();
        bytes memory votes = _votes(batch);
        Redemption[] memory fewer = new Redemption[](2);
        (fewer[0], fewer[1]) = (batch[0], batch[1]);
        _wrongSigner(fewer, votes);
        batch[1].amount += 1;
        _wrongSigner(batch, votes);
    }

    /// @dev A vote for one redemption is not one for a batch of it, nor the other way round.
    function test_RevertIf_TheVotesAreForTheRedemptionAlone() public {
        Redemption[] memory batch = new Redemption[](1);
        batch[0] = redemption(ETHER, 1 ether, 0, 3);
        _wrongSigner(batch, certify(batch[0]));
        bytes memory votes = _votes(batch);
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.redeem(batch[0], 0, votes);
    }

    function test_RevertIf_TheVotesAreNoQuorum() public {
        Redemption[] memory batch = _batch();
        bytes32 digest = fastPay.redemptionBatchVoteDigest(0, batch);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.WrongVotesLength.selector, WHOLE_CALL, 132, 198));
        fastPay.redeemBatch(batch, 0, votesOf(0, 2, digest));
        bytes memory votes = bytes.concat(votesOf(0, 2, digest), votesOf(1, 1, digest));
        vm.expectRevert(abi.encodeWithSelector(IFastPay.VotesNotAscending.selector, WHOLE_CALL, 2, 1));
        fastPay.redeemBatch(batch, 0, votes);
    }

    function test_RevertIf_TheEpochIsAnother() public {
        Redemption[] memory batch = _batch();
        bytes memory votes = _votes(batch);
        vm.expectRevert(abi.encodeWithSelector(IFastPay.UnknownEpoch.selector, 1));
        fastPay.redeemBatch(batch, 1, votes);
    }

    function test_RevertIf_AnItemIsInvalid() public {
        Redemption[] memory batch = _batch();
        batch[2] = redemption(ETHER, 0, 0, 9);
        _fails(batch, abi.encodeWithSelector(IFastPay.ZeroRedemption.selector, 2));
        batch[2] = redemption(ETHER, 1, 2, 9);
        _fails(batch, abi.encodeWithSelector(IFastPay.FeeAboveAmount.selector, 2, 2, 1));
        batch[2] = redemption(ETHER, 10 ether, 0, 9);
        _fails(batch, abi.encodeWithSelector(IFastPay.BalanceTooLow.selector, 2, ETHER, 9 ether, 10 ether));
    }

    function testFuzz_PaysWhatSingleRedemptionsWould(uint8 done, uint64 first, uint256 count) public {
        count = bound(count, 1, 8);
        first = uint64(bound(first, 0, type(uint64).max - 8));
        Redemption[] memory batch = new Redemption[](count);
        uint256 total = 0;
        for (uint64 i = 0; i < count; ++i) {
            batch[i] = redemption(ETHER, (i + 1) * 0.1 ether, i, first + i);
            total += batch[i].amount;
            if ((done >> i) & 1 == 1) redeem(batch[i]);
        }
        bytes memory votes = _votes(batch);
        vm.prank(relayer);
        fastPay.redeemBatch(batch, 0, votes);
        assertEq(bob.balance + relayer.balance, total);
        assertHolding(ETHER, 10 ether - total, 0);
    }

    function testFuzz_RevertIf_CalldataIsNoise(bytes calldata noise) public {
        (bool success,) = address(fastPay).call(bytes.concat(IFastPay.redeemBatch.selector, noise));
        assertFalse(success);
    }

    // ------------------------------------------------------------------------------------- private

    function _batch() private view returns (Redemption[] memory batch) {
        batch = new Redemption[](3);
        batch[0] = redemption(ETHER, 1 ether, 0.1 ether, 4);
        batch[1] = redemption(address(token), 10, 1, 2);
        batch[2] = redemption(ETHER, 2 ether, 0.1 ether, 0);
    }

    function _votes(Redemption[] memory batch) private view returns (bytes memory) {
        return votesOf(0, 3, fastPay.redemptionBatchVoteDigest(0, batch));
    }

    function _wrongSigner(Redemption[] memory batch, bytes memory votes) private {
        vm.expectPartialRevert(IFastPay.WrongSigner.selector);
        fastPay.redeemBatch(batch, 0, votes);
    }

    function _fails(Redemption[] memory batch, bytes memory revertData) private {
        bytes memory votes = _votes(batch);
        vm.expectRevert(revertData);
        fastPay.redeemBatch(batch, 0, votes);
        assertFalse(fastPay.isRedeemed(ACCOUNT, 4), "an item of a batch that failed stayed redeemed");
    }
}
