// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {CertifiedRedemption, IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient} from "../mocks/Recipients.sol";
import {FeeToken, MoodyToken, ZooToken} from "../tokens/WeirdTokens.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {CommonBase} from "forge-std/Base.sol";
import {StdUtils} from "forge-std/StdUtils.sol";
import {Vm} from "forge-std/Vm.sol";

/// @title Everything that the world does to the contract, and what it should have come to
/// @notice Deposits, redeems and claims at random, and keeps sums of its own ("ghosts"), from the calls that it made
/// and the balances that moved, never from what the contract says about itself.
contract Handler is CommonBase, StdUtils {
    uint256 private constant ACCOUNTS = 3;
    uint64 private constant SEQUENCES = 12; // few, so that the same numbers come up again and again

    IFastPay public immutable fastPay;
    uint256[3] private _keys; // of a quorum: members 0, 1 and 2

    address[] public assets; // ETH, a token that behaves, one that takes a fee, one with moods
    address[] public payees; // wallets, and a recipient of ETH with moods
    MoodyToken private immutable _moody;
    MoodyRecipient private immutable _recipient;

    mapping(address asset => uint256) public deposited; // what arrived
    mapping(address asset => uint256) public redeemed; // what accounts were debited
    mapping(address asset => uint256) public claimed; // what claims were paid
    mapping(address asset => uint256) public paid; // what left the contract, by its own balance
    mapping(bytes32 sender => mapping(uint64 sequence => uint256)) public payments; // times that a number was paid
    uint256 public events;

    constructor(IFastPay fastPay_, uint256[3] memory keys) {
        fastPay = fastPay_;
        _keys = keys;
        _moody = new MoodyToken();
        _recipient = new MoodyRecipient(MoodyRecipient.Mood.Accepts);
        assets = [address(0), address(new MoodyToken()), address(new FeeToken()), address(_moody)];
        payees = [address(_recipient), vm.addr(0xb0b), vm.addr(0xca401)];
    }

    // ------------------------------------------------------------------------------------- actions

    function depositEther(uint256 account, uint256 amount, bool plainly) external {
        amount = bound(amount, 1, 1e24);
        address payer = payees[1];
        vm.deal(payer, payer.balance + amount);
        vm.prank(payer, payer);
        if (plainly) {
            (bool sent,) = address(fastPay).call{value: amount}("");
            require(sent);
        } else {
            fastPay.depositEther{value: amount}(_account(account));
        }
        deposited[address(0)] += amount;
        ++events;
    }

    function depositToken(uint256 account, uint256 which, uint256 amount) external {
        ZooToken asset = ZooToken(assets[bound(which, 1, assets.length - 1)]);
        amount = bound(amount, 1, 1e24);
        address payer = payees[1];
        asset.mint(payer, amount);
        uint256 before = asset.balanceOf(address(fastPay));
        vm.startPrank(payer);
        asset.approve(address(fastPay), amount);
        try fastPay.depositToken(_account(account), asset, uint128(amount)) {
            deposited[address(asset)] += asset.balanceOf(address(fastPay)) - before;
            ++events;
        } catch {
            require(address(asset) == address(_moody), "a deposit of a token that behaves failed");
        }
        vm.stopPrank();
    }

    function redeem(
        uint256 account,
        uint256 payee,
        uint256 which,
        uint256 amount,
        uint256 fee,
        uint64 sequence
    ) external {
        Redemption memory order = _order(account, payee, which, amount, fee, sequence);
        if (order.amount == 0) return;
        uint256 before = _held(order.asset);
        bytes memory votes = _votes(order);
        vm.prank(payees[2]);
        try fastPay.redeem(order, 0, votes) {
            _count(order, before);
        } catch (bytes memory reason) {
            require(bytes4(reason) == IFastPay.AlreadyRedeemed.selector, "a good redemption failed");
            require(payments[order.sender][order.sequence] > 0, "a new redemption was called old");
            require(_held(order.asset) == before, "a failed redemption paid");
        }
    }

    function redeemMany(uint256 seed, uint256 count) external {
        count = bound(count, 0, 5);
        CertifiedRedemption[] memory items = new CertifiedRedemption[](count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 random = uint256(keccak256(abi.encode(seed, i)));
            // A fifth of what there is, so that all five fit.
            Redemption memory order =
                _order(random, random >> 8, random >> 16, random >> 24, random >> 152, uint64(random >> 32));
            order.amount = order.amount / 5 + 1;
            order.fee = order.fee / 5;
            if (order.amount * 5 > fastPay.totalBalance(order.asset)) return;
            items[i] = CertifiedRedemption({redemption: order, epoch: 0, votes: _votes(order)});
        }
        uint256[4] memory before;
        for (uint256 i = 0; i < assets.length; ++i) {
            before[i] = _held(assets[i]);
        }
        vm.prank(payees[2]);
        fastPay.redeemMany(items);
        for (uint256 i = 0; i < count; ++i) {
            Redemption memory order = items[i].redemption;
            if (payments[order.sender][order.sequence] == 0) {
                ++payments[order.sender][order.sequence];
                redeemed[order.asset] += order.amount;
                ++events;
            }
        }
        for (uint256 i = 0; i < assets.length; ++i) {
            paid[assets[i]] += before[i] - _held(assets[i]);
        }
    }

    function redeemWithoutAQuorum(
        uint256 account,
        uint256 payee,
        uint256 which,
        uint256 amount,
        uint256 change
    ) external {
        Redemption memory order = _order(account, payee, which, amount, 0, uint64(change));
        bytes memory votes = _votes(order);
        change = bound(change, 0, votes.length - 1);
        votes[change] ^= 0x10;
        try fastPay.redeem(order, 0, votes) {
            require(false, "paid without a quorum");
        } catch {}
    }

    function claim(uint256 payee, uint256 which, bool elsewhere) external {
        address owner = payees[bound(payee, 0, payees.length - 1)];
        address asset = assets[bound(which, 0, assets.length - 1)];
        uint256 before = _held(asset);
        uint256 owed = fastPay.claimOf(owner, asset);
        vm.prank(owner);
        // With a bound, for a mood may burn all gas that there is.
        (bool success,) = address(fastPay).call{gas: 1_000_000}(
            elsewhere
                ? abi.encodeCall(IFastPay.claim, (asset, payees[1], owed))
                : abi.encodeCall(IFastPay.claimFor, (owner, asset, owed))
        );
        if (!success) return;
        require(owed > 0, "an empty claim was paid");
        claimed[asset] += owed;
        paid[asset] += before - _held(asset);
    }

    function changeMood(uint256 ofToken, uint256 ofRecipient) external {
        // The moods with which a token pays or refuses; those with which it lies are tested elsewhere.
        MoodyToken.Mood[4] memory moods = [
            MoodyToken.Mood.Good,
            MoodyToken.Mood.ReturnsNothing,
            MoodyToken.Mood.ReturnsFalse,
            MoodyToken.Mood.Reverts
        ];
        _moody.setMood(moods[bound(ofToken, 0, 3)]);
        _recipient.setMood(MoodyRecipient.Mood(bound(ofRecipient, 0, 4)));
    }

    function donate(uint256 amount) external {
        amount = bound(amount, 0, 1e20);
        vm.deal(address(fastPay), address(fastPay).balance + amount); // forced: no code runs
        ZooToken(assets[1]).mint(address(fastPay), amount);
    }

    // --------------------------------------------------------------------------------------- reads

    function numberOfAssets() external view returns (uint256) {
        return assets.length;
    }

    function numberOfPayees() external view returns (uint256) {
        return payees.length;
    }

    /// @dev Calls `check` for every account and number that can have been redeemed.
    function eachPayment(function(bytes32, uint64, uint256) external view check) external view {
        for (uint256 account = 0; account < ACCOUNTS; ++account) {
            for (uint64 sequence = 0; sequence < SEQUENCES; ++sequence) {
                uint64 number = _sequence(sequence);
                check(_account(account), number, payments[_account(account)][number]);
            }
        }
    }

    // ------------------------------------------------------------------------------------- private

    function _count(Redemption memory order, uint256 before) private {
        ++payments[order.sender][order.sequence];
        redeemed[order.asset] += order.amount;
        ++events;
        paid[order.asset] += before - _held(order.asset);
    }

    /// @dev A redemption that the contract can pay; of zero, if it holds nothing.
    function _order(
        uint256 account,
        uint256 payee,
        uint256 which,
        uint256 amount,
        uint256 fee,
        uint64 sequence
    ) private view returns (Redemption memory order) {
        order.sender = _account(account);
        order.recipient = payees[bound(payee, 0, payees.length - 1)];
        order.asset = assets[bound(which, 0, assets.length - 1)];
        uint256 most = fastPay.totalBalance(order.asset);
        order.amount = most == 0 ? 0 : uint128(bound(amount, 1, most));
        order.fee = uint128(bound(fee, 0, order.amount));
        order.sequence = _sequence(sequence);
    }

    function _account(uint256 account) private pure returns (bytes32) {
        return bytes32(1 + account % ACCOUNTS);
    }

    /// @dev Numbers on both sides of the border between two words of the bitmap.
    function _sequence(uint64 sequence) private pure returns (uint64) {
        return 250 + sequence % SEQUENCES;
    }

    function _votes(Redemption memory order) private view returns (bytes memory votes) {
        bytes32 digest = fastPay.redemptionVoteDigest(0, order);
        for (uint8 member = 0; member < 3; ++member) {
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(_keys[member], digest);
            votes = bytes.concat(votes, abi.encodePacked(member, r, s, v));
        }
    }

    function _held(address asset) private view returns (uint256) {
        return asset == address(0) ? address(fastPay).balance : IERC20(asset).balanceOf(address(fastPay));
    }
}
