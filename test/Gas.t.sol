// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil} from "../contracts/interfaces/ICouncil.sol";
import {CertifiedRedemption, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {FastPayTest} from "./FastPayTest.sol";
import {DemoToken} from "./tokens/DemoToken.sol";

/// @title What users pay, as whole transactions, against snapshots/gas.json
/// @notice Under `isolate`, forge executes each call from a test as a transaction of its own, so that the figures
/// include the base cost, the cost of calldata and the refund, and every account and slot starts cold. Redemptions
/// are of ETH, without a fee, to a recipient that has ETH, from an account that has redeemed before, unless their name says
/// otherwise. The relayer and the payer have been seen before, too. Of a bundle (`redeemMany`) and a batch (`redeemBatch`) the
/// figure is per redemption. No limit holds anything back.
///
/// `UPDATE_GAS=true forge test --match-contract GasTest` writes the file anew.
/// forge-config: default.isolate = true
contract GasTest is FastPayTest {
    string private constant PATH = "snapshots/gas.json";

    string private _figures;

    function setUp() public override {
        super.setUp();
        vm.deal(bob, 1 ether);
        vm.deal(relayer, 1 ether);
    }

    function test_GasIsAsInTheSnapshot() public {
        _check("redeem_n4", _redeem(4), 67_000);
        _check("redeem_n10", _redeem(10), 86_000);
        _check("redeem_n20", _redeem(20), 118_000);
        _check("bundle10_n4", _bundle(4, 10), 42_000);
        _check("batch100_n4", _batch(4, 100), 23_000);
        _check("batch100_n100", _batch(100, 100), 30_000);
        _check("deposit_eth", _depositEther(), 31_500);
        _check("deposit_erc20", _depositToken(), 57_000);
        _whatAUserMeets();
        _unlock();
        if (vm.envOr("UPDATE_GAS", false)) vm.writeJson(_figures, PATH);
    }

    /// @dev Redemptions that are not the cheapest case.
    function _whatAUserMeets() private {
        _prepare(4);
        _check("redeem_fee_n4", _one(redemption(ETHER, 1 ether, 0.1 ether, 77)), 75_000);
        fundToken(token, 1e12);
        token.transfer(bob, 1);
        _check("redeem_erc20_n4", _one(redemption(address(token), 1e6, 0, 78)), 79_000);
        Redemption memory order = redemption(ETHER, 1 ether, 0, 77);
        order.sender = keccak256("an account that never redeemed");
        _check("redeem_first_order_n4", _one(order), 85_000);
        order.sender = keccak256("another one");
        order.recipient = address(0x1234567890123456789012345678901234567890);
        _check("redeem_first_order_new_recipient_n4", _one(order), 110_000);
        _check("redeem_n100", _redeem(100), 355_000);
    }

    /// @dev Of an Ethereum account that has redeemed before, with its signature.
    function _unlock() private {
        _prepare(4);
        ICouncil council = fastPay.council();
        bytes32 account = bytes32(uint256(uint160(vm.addr(0xa11ce))));
        Redemption memory order = redemption(ETHER, 1 ether, 0, 1);
        order.sender = account;
        redeem(order);
        _check("unlock_request_n4", _requestUnlock(council, account, 77), 85_000);
        bytes32 digest = keccak256("an order");
        bytes memory votes = votesOf(0, 3, council.certificateVoteDigest(0, account, 77, digest));
        vm.prank(relayer);
        council.upholdSequence(account, 77, digest, votes);
        _check("unlock_uphold_n4", vm.lastCallGas().gasTotalUsed, 75_000);
        _requestUnlock(council, account, 78);
        skip(7 days);
        votes = votesOf(0, 3, council.voidVoteDigest(0, account, 78, false));
        vm.prank(alice);
        council.voidSequence(account, 78, false, votes);
        _check("unlock_void_n4", vm.lastCallGas().gasTotalUsed, 95_000);
    }

    function _requestUnlock(ICouncil council, bytes32 account, uint64 sequence) private returns (uint256) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(0xa11ce, council.unlockRequestDigest(account, sequence));
        uint256 bond = council.unlockBond();
        vm.prank(relayer);
        council.requestUnlock{value: bond}(account, sequence, abi.encodePacked(r, s, v));
        return vm.lastCallGas().gasTotalUsed;
    }

    function _one(Redemption memory order) private returns (uint256) {
        bytes memory votes = certify(order);
        vm.prank(relayer);
        fastPay.redeem(order, 0, votes);
        return vm.lastCallGas().gasTotalUsed;
    }

    /// @param most What it may cost, whatever the snapshot says.
    function _check(string memory name, uint256 gas, uint256 most) private {
        if (vm.envOr("UPDATE_GAS", false)) {
            _figures = vm.serializeUint("gas", name, gas);
        } else {
            assertEq(gas, vm.parseJsonUint(vm.readFile(PATH), string.concat(".", name)), name);
        }
        assertLe(gas, most, name);
    }

    function _redeem(uint256 size) private returns (uint256) {
        _prepare(size);
        Redemption memory order = redemption(ETHER, 0.123456789 ether, 0, 77);
        bytes memory votes = certify(order);
        vm.prank(relayer);
        fastPay.redeem(order, 0, votes);
        return vm.lastCallGas().gasTotalUsed;
    }

    function _bundle(uint256 size, uint64 count) private returns (uint256) {
        _prepare(size);
        CertifiedRedemption[] memory items = new CertifiedRedemption[](count);
        for (uint64 i = 0; i < count; ++i) {
            items[i] = certified(_orderOfAnother(i));
        }
        vm.prank(relayer);
        fastPay.redeemMany(items);
        return vm.lastCallGas().gasTotalUsed / count;
    }

    function _batch(uint256 size, uint64 count) private returns (uint256) {
        _prepare(size);
        Redemption[] memory items = new Redemption[](count);
        for (uint64 i = 0; i < count; ++i) {
            items[i] = _orderOfAnother(i);
        }
        bytes memory votes = votesOf(0, fastPay.quorum(0), fastPay.redemptionBatchVoteDigest(0, items));
        vm.prank(relayer);
        fastPay.redeemBatch(items, 0, votes);
        return vm.lastCallGas().gasTotalUsed / count;
    }

    /// @dev An order of an account of its own to a recipient of its own, both seen before.
    function _orderOfAnother(uint64 i) private returns (Redemption memory order) {
        order = redemption(ETHER, 0.123456789 ether, 0, 1);
        order.sender = keccak256(abi.encode("account", i));
        order.recipient = address(uint160(uint256(keccak256(abi.encode("recipient", i)))));
        vm.deal(order.recipient, 1 ether);
        redeem(order);
        order.sequence = 77;
    }

    function _depositEther() private returns (uint256) {
        _prepare(4);
        vm.deal(alice, 10 ether);
        vm.prank(alice);
        fastPay.depositEther{value: 0.123456789 ether}(ACCOUNT);
        return vm.lastCallGas().gasTotalUsed;
    }

    function _depositToken() private returns (uint256) {
        _prepare(4);
        fundToken(token, 1e12);
        token.transfer(alice, 1e12);
        vm.prank(alice);
        token.approve(address(fastPay), type(uint256).max);
        vm.prank(alice);
        fastPay.depositToken(ACCOUNT, token, 123_456_789);
        return vm.lastCallGas().gasTotalUsed;
    }

    /// @dev A contract in use: funded, and with one redemption from the account behind it.
    function _prepare(uint256 size) private {
        fastPay = deploy(size);
        fundEther(1000 ether);
        redeem(redemption(ETHER, 1 ether, 0, 1));
    }
}
