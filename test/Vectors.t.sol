// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Authority, IFastPay, Redemption} from "../contracts/interfaces/IFastPay.sol";
import {Redemptions} from "../contracts/libraries/Redemptions.sol";
import {MoodyToken} from "./tokens/WeirdTokens.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {Test} from "forge-std/Test.sol";

/// @title The vectors that the Rust core writes: both sides hash alike, and judge votes alike
contract VectorsTest is Test {
    string private constant PATH = "vectors/redemptions.json";

    string private _json;
    IFastPay private _fastPay;

    function setUp() public {
        _json = vm.readFile(PATH);
        vm.chainId(vm.parseJsonUint(_json, ".domain.chainId"));
        address deployment = vm.parseJsonAddress(_json, ".domain.verifyingContract");
        deployCodeTo("FastPay.sol:FastPay", abi.encode(_committee()), deployment);
        _fastPay = IFastPay(payable(deployment));
        vm.deal(address(this), type(uint128).max);
    }

    function test_TheDomainIsTheSame() public view {
        (, string memory name, string memory version,,,,) = _fastPay.eip712Domain();
        assertEq(name, vm.parseJsonString(_json, ".domain.name"));
        assertEq(version, vm.parseJsonString(_json, ".domain.version"));
        assertEq(_fastPay.epoch(), vm.parseJsonUint(_json, ".epoch"));
    }

    function test_EachCase() public {
        uint256 cases = 0;
        uint256 valid = 0;
        for (; vm.keyExistsJson(_json, _path(".cases", cases, "")); ++cases) {
            if (_check(_path(".cases", cases, ""))) ++valid;
        }
        assertGt(valid, 0, "no valid case");
        assertGt(cases, valid, "no invalid case");
    }

    /// @dev Checks one case as if it were the only one.
    function _check(string memory path) private returns (bool valid) {
        string memory name = vm.parseJsonString(_json, string.concat(path, ".name"));
        Redemption memory order = _redemption(string.concat(path, ".redemption"));
        uint64 epoch = uint64(vm.parseJsonUint(_json, string.concat(path, ".epoch")));
        bytes memory votes = vm.parseJsonBytes(_json, string.concat(path, ".votes"));
        valid = vm.parseJsonBool(_json, string.concat(path, ".valid"));

        assertEq(
            this.orderDigest(order), vm.parseJsonBytes32(_json, string.concat(path, ".orderDigest")), name
        );
        assertEq(
            _fastPay.redemptionVoteDigest(epoch, order),
            vm.parseJsonBytes32(_json, string.concat(path, ".voteDigest")),
            name
        );

        uint256 state = vm.snapshotState();
        _fund(order);
        try _fastPay.redeem(order, epoch, votes) {
            assertTrue(valid, string.concat(name, ": an invalid case was paid"));
            assertTrue(_fastPay.isRedeemed(order.sender, order.sequence), name);
        } catch (bytes memory reason) {
            assertFalse(valid, string.concat(name, ": a valid case was refused: ", vm.toString(reason)));
        }
        vm.revertToState(state);
    }

    /// @dev What the sender of an order signs. The contract does not check it, but must mean the same order.
    function orderDigest(Redemption calldata order) external view returns (bytes32) {
        (, string memory name, string memory version, uint256 chainId, address verifyingContract,,) =
            _fastPay.eip712Domain();
        bytes32 domain = MessageHashUtils.toDomainSeparator(
            bytes1(0x0f), name, version, chainId, verifyingContract, bytes32(0)
        );
        return MessageHashUtils.toTypedDataHash(domain, Redemptions.hash(order));
    }

    /// @dev Makes sure that the contract can pay the order, so that only its validity decides.
    function _fund(Redemption memory order) private {
        if (order.amount == 0) return;
        if (order.asset == address(0)) {
            _fastPay.depositEther{value: order.amount}(bytes32(uint256(1)));
            return;
        }
        MoodyToken model = new MoodyToken();
        vm.etch(order.asset, address(model).code);
        MoodyToken(order.asset).mint(address(this), order.amount);
        MoodyToken(order.asset).approve(address(_fastPay), order.amount);
        _fastPay.depositToken(bytes32(uint256(1)), IERC20(order.asset), order.amount);
    }

    function _committee() private view returns (Authority[] memory committee) {
        uint256 size = 0;
        while (vm.keyExistsJson(_json, _path(".committee", size, ""))) ++size;
        committee = new Authority[](size);
        for (uint256 i = 0; i < size; ++i) {
            committee[i] = Authority({
                votingKey: vm.parseJsonBytes32(_json, _path(".committee", i, ".votingKey")),
                redemptionKey: vm.parseJsonAddress(_json, _path(".committee", i, ".redemptionKey"))
            });
        }
    }

    function _redemption(string memory path) private view returns (Redemption memory) {
        return Redemption({
            sender: vm.parseJsonBytes32(_json, string.concat(path, ".sender")),
            recipient: vm.parseJsonAddress(_json, string.concat(path, ".recipient")),
            asset: vm.parseJsonAddress(_json, string.concat(path, ".asset")),
            amount: uint128(vm.parseJsonUint(_json, string.concat(path, ".amount"))),
            fee: uint128(vm.parseJsonUint(_json, string.concat(path, ".fee"))),
            sequence: uint64(vm.parseJsonUint(_json, string.concat(path, ".sequence"))),
            memo: vm.parseJsonBytes32(_json, string.concat(path, ".memo"))
        });
    }

    function _path(string memory list, uint256 index, string memory field)
        private
        pure
        returns (string memory)
    {
        return string.concat(list, "[", vm.toString(index), "]", field);
    }

    receive() external payable {}
}
