// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {
    AssetCap,
    Authority,
    CertifiedRedemption,
    IFastPay,
    Redemption,
    SafetyParameters
} from "../contracts/interfaces/IFastPay.sol";
import {DemoToken} from "./tokens/DemoToken.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Test} from "forge-std/Test.sol";

/// @title A committee whose keys are known, and what it can sign
abstract contract FastPayTest is Test {
    address internal constant ETHER = address(0);
    bytes32 internal constant ACCOUNT = keccak256("an Ed25519 account");
    /// @dev The most that is held for accounts of ETH, and of a token.
    uint128 internal constant ETHER_CAP = type(uint88).max;
    uint128 internal constant CAP = uint128(type(int128).max);

    IFastPay internal fastPay;
    DemoToken internal token;

    address internal alice = makeAddr("alice");
    address internal bob = makeAddr("bob");
    address internal relayer = makeAddr("relayer");
    address internal guardian = makeAddr("guardian");
    address internal recovery = makeAddr("recovery");

    function setUp() public virtual {
        fastPay = deploy(4);
        token = new DemoToken("Demo", "DEMO", 6, type(uint256).max);
    }

    // ----------------------------------------------------------------------------- the committee

    /// @dev The redemption key of a member of any committee here.
    function memberKey(uint256 member) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode("redemption key", member)));
    }

    /// @dev By the name of its artifact, so that only the contract itself takes the slow way through the compiler.
    function deploy(uint256 size) internal returns (IFastPay) {
        return deploy(size, defaultParameters());
    }

    function deploy(uint256 size, SafetyParameters memory parameters) internal returns (IFastPay) {
        return deploy(size, parameters, new AssetCap[](0));
    }

    function deploy(uint256 size, SafetyParameters memory parameters, AssetCap[] memory caps)
        internal
        returns (IFastPay)
    {
        ICouncil council = deployCouncil();
        bytes memory arguments = abi.encode(authorities(size), guardian, council, parameters, caps);
        return IFastPay(payable(deployCode("FastPay.sol:FastPay", arguments)));
    }

    /// @dev The council of the contract that is created next.
    function deployCouncil() internal returns (ICouncil) {
        address next = vm.computeCreateAddress(address(this), vm.getNonce(address(this)) + 1);
        return ICouncil(deployCode("Council.sol:Council", abi.encode(next, recovery)));
    }

    /// @dev All that is held of an asset may leave in a day, so that no test has to wait that is not about waiting.
    function defaultParameters() internal pure returns (SafetyParameters memory) {
        return SafetyParameters({
            pauseDuration: 1 days,
            pauseCooldown: 7 days,
            outflowWindow: 1 days,
            outflowShare: 10_000,
            outflowDelay: 3 days,
            votesValidity: 14 days,
            unlockWindow: 7 days
        });
    }

    function authorities(uint256 size) internal pure returns (Authority[] memory) {
        return authoritiesFrom(0, size);
    }

    /// @dev A committee of the members `first`, `first + 1`, …
    function authoritiesFrom(uint256 first, uint256 size) internal pure returns (Authority[] memory list) {
        list = new Authority[](size);
        for (uint256 i = 0; i < size; ++i) {
            uint256 member = first + i;
            list[i] = Authority({
                votingKey: bytes32((member + 1) << 240), redemptionKey: vm.addr(memberKey(member))
            });
        }
    }

    /// @dev Begins the next epoch as the council would, without its delays. No keys were out.
    function rotate(Authority[] memory next, address nextGuardian) internal {
        uint64 epoch = fastPay.epoch() + 1;
        vm.prank(address(fastPay.council()));
        fastPay.install(next, nextGuardian, epoch, 0);
    }

    /// @dev What is signed of a struct with this hash.
    function digestOf(bytes32 structHash) internal view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256(
                    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
                ),
                keccak256("FastPay"),
                keccak256("1"),
                block.chainid,
                address(fastPay)
            )
        );
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    /// @dev The digest of an order, which its sender signs.
    function orderDigest(Redemption memory order) internal view returns (bytes32) {
        bytes32 typeHash = keccak256(
            "Redemption(bytes32 sender,address recipient,address asset,uint128 amount,uint128 fee,uint64 sequence,bytes32 memo)"
        );
        return digestOf(keccak256(abi.encode(typeHash, order)));
    }

    /// @dev Expects that an order is paid next, under `index`.
    function expectRedeemed(Redemption memory order, uint64 index) internal {
        vm.expectEmit(address(fastPay));
        emit IFastPay.Redeemed(
            order.sender,
            order.recipient,
            order.asset,
            index,
            order.sequence,
            order.amount,
            order.fee,
            relayer,
            orderDigest(order)
        );
    }

    /// @dev Expects that an order of epoch 0 is queued next, under `index`.
    function expectQueued(Redemption memory order, uint64 index, uint256 executableAt) internal {
        vm.expectEmit(address(fastPay));
        emit IFastPay.RedemptionQueued(
            order.sender,
            order.recipient,
            order.asset,
            index,
            order.sequence,
            order.amount,
            order.fee,
            relayer,
            orderDigest(order),
            0,
            executableAt
        );
    }

    /// @dev One vote, as the contract reads it.
    function vote(uint8 member, uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(member, r, s, v);
    }

    /// @dev Votes of the members `first`, `first + 1`, … for a digest.
    function votesOf(uint8 first, uint256 count, bytes32 digest) internal pure returns (bytes memory votes) {
        for (uint256 i = 0; i < count; ++i) {
            // forge-lint: disable-next-line(unsafe-typecast)
            uint8 member = uint8(first + i);
            votes = bytes.concat(votes, vote(member, memberKey(member), digest));
        }
    }

    /// @dev The votes of a quorum for a redemption in epoch 0.
    function certify(Redemption memory order) internal view returns (bytes memory) {
        return votesOf(0, fastPay.quorum(0), fastPay.redemptionVoteDigest(0, order));
    }

    function certified(Redemption memory order) internal view returns (CertifiedRedemption memory) {
        return CertifiedRedemption({redemption: order, epoch: 0, votes: certify(order)});
    }

    // ---------------------------------------------------------------------- orders and deposits

    function redemption(address asset, uint128 amount, uint128 fee, uint64 sequence)
        internal
        view
        returns (Redemption memory)
    {
        return Redemption({
            sender: ACCOUNT,
            recipient: bob,
            asset: asset,
            amount: amount,
            fee: fee,
            sequence: sequence,
            memo: bytes32(0)
        });
    }

    function redeem(Redemption memory order) internal {
        bytes memory votes = certify(order);
        vm.prank(relayer);
        fastPay.redeem(order, 0, votes);
    }

    /// @dev Expects the next redemption of `order` to fail with `revertData`.
    function redeemFails(Redemption memory order, bytes memory revertData) internal {
        bytes memory votes = certify(order);
        vm.expectRevert(revertData);
        vm.prank(relayer);
        fastPay.redeem(order, 0, votes);
    }

    function fundEther(uint256 amount) internal {
        vm.deal(alice, alice.balance + amount);
        vm.prank(alice);
        fastPay.depositEther{value: amount}(ACCOUNT);
    }

    function fundToken(IERC20 asset, uint128 amount) internal {
        if (asset.balanceOf(alice) < amount) require(asset.transfer(alice, amount));
        vm.startPrank(alice);
        asset.approve(address(fastPay), amount);
        fastPay.depositToken(ACCOUNT, asset, amount);
        vm.stopPrank();
    }

    function assertHolding(address asset, uint256 balance, uint256 claims) internal view {
        assertEq(fastPay.totalBalance(asset), balance, "totalBalance");
        assertEq(fastPay.totalClaims(asset), claims, "totalClaims");
        uint256 held = asset == ETHER ? address(fastPay).balance : IERC20(asset).balanceOf(address(fastPay));
        assertGe(held, balance + claims, "the contract holds less than it owes");
    }
}
