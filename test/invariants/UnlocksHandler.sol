// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ICouncil, Outcome, Upholding} from "../../contracts/interfaces/ICouncil.sol";
import {Authority, IFastPay, Redemption} from "../../contracts/interfaces/IFastPay.sol";
import {MoodyRecipient} from "../mocks/Recipients.sol";
import {CommonBase} from "forge-std/Base.sol";
import {StdUtils} from "forge-std/StdUtils.sol";

/// @title Requests, decisions, redemptions and installations at random
/// @notice Keeps what each number should have come to, from the calls that succeeded.
contract UnlocksHandler is CommonBase, StdUtils {
    uint256 private constant BOND = 0.005 ether;
    uint64 public constant NUMBERS = 6; // few, so that the same numbers come up again and again
    bytes32 public constant ACCOUNT = keccak256("an Ed25519 account");
    bytes32 private constant DIGEST = keccak256("an order");

    IFastPay private immutable FAST_PAY;
    ICouncil private immutable COUNCIL;
    uint256[4] private _keys;
    address[2] private _payers; // one takes its bond, and one has moods

    mapping(uint64 sequence => Outcome) public outcome;
    mapping(uint64 sequence => bool) public paid;
    mapping(uint64 sequence => bool) public bonded; // whether its bond is still there
    mapping(uint64 sequence => bool) public asked;
    uint256 public events;

    constructor(IFastPay fastPay, uint256[4] memory keys) {
        (FAST_PAY, COUNCIL) = (fastPay, fastPay.council());
        _keys = keys;
        _payers = [vm.addr(0xb0b), address(new MoodyRecipient(MoodyRecipient.Mood.Reverts))];
        events = fastPay.lastTransactionIndex();
    }

    function request(uint64 sequence, uint256 who) external {
        sequence = _number(sequence);
        address payer = _payers[who % 2];
        uint256 bond = asked[sequence] ? 0 : BOND;
        vm.deal(payer, payer.balance + bond);
        vm.prank(payer);
        try COUNCIL.requestUnlock{value: bond}(ACCOUNT, sequence, "signed") {
            require(outcome[sequence] == Outcome.None, "a number with an outcome was asked about");
            if (bond > 0) bonded[sequence] = true;
            asked[sequence] = true;
            ++events;
        } catch {
            require(outcome[sequence] != Outcome.None, "a request was refused");
        }
    }

    function uphold(uint64 sequence) external {
        sequence = _number(sequence);
        bytes memory votes =
            _votes(3, COUNCIL.certificateVoteDigest(FAST_PAY.epoch(), ACCOUNT, sequence, DIGEST));
        try COUNCIL.upholdSequence(ACCOUNT, sequence, DIGEST, votes) {
            _upheld(sequence);
        } catch {
            require(!asked[sequence] || outcome[sequence] != Outcome.None, "an uphold was refused");
        }
    }

    function upholdTwo(uint64 first, uint64 second) external {
        Upholding[] memory items = new Upholding[](2);
        (first, second) = (_number(first), _number(second));
        for (uint256 i = 0; i < 2; ++i) {
            uint64 sequence = i == 0 ? first : second;
            bytes32 digest = COUNCIL.certificateVoteDigest(FAST_PAY.epoch(), ACCOUNT, sequence, DIGEST);
            items[i] = Upholding(ACCOUNT, sequence, DIGEST, _votes(3, digest));
        }
        try COUNCIL.upholdMany(items) {
            if (outcome[first] == Outcome.None) _upheld(first);
            if (outcome[second] == Outcome.None) _upheld(second);
        } catch {
            require(!asked[first] || !asked[second], "upholds were refused");
        }
    }

    function void(uint64 sequence, bool unanimous) external {
        sequence = _number(sequence);
        bytes32 digest = COUNCIL.voidVoteDigest(FAST_PAY.epoch(), ACCOUNT, sequence, unanimous);
        (, uint256 voidableFrom,) = COUNCIL.unlockOf(ACCOUNT, sequence);
        if (unanimous) voidableFrom = COUNCIL.unanimousFrom();
        bool canBe = asked[sequence] && outcome[sequence] == Outcome.None && !paid[sequence]
            && vm.getBlockTimestamp() >= voidableFrom;
        uint256 before = address(COUNCIL).balance;
        try COUNCIL.voidSequence(ACCOUNT, sequence, unanimous, _votes(unanimous ? 4 : 3, digest)) {
            require(canBe, "a number was voided that cannot be");
            outcome[sequence] = Outcome.Voided;
            if (address(COUNCIL).balance < before) bonded[sequence] = false;
            ++events;
        } catch {
            require(!canBe, "a void was refused");
        }
    }

    function returnBond(uint64 sequence, bool takes) external {
        sequence = _number(sequence);
        MoodyRecipient payer = MoodyRecipient(payable(_payers[1]));
        payer.setMood(takes ? MoodyRecipient.Mood.Accepts : MoodyRecipient.Mood.Reverts);
        try COUNCIL.returnBond(ACCOUNT, sequence) {
            require(outcome[sequence] == Outcome.Voided && bonded[sequence], "a bond was paid twice");
            bonded[sequence] = false;
        } catch {}
    }

    function redeem(uint64 sequence) external {
        sequence = _number(sequence);
        uint64 epoch = FAST_PAY.epoch();
        Redemption memory order = Redemption(ACCOUNT, _payers[0], address(0), 1, 0, sequence, 0);
        bytes memory votes = _votes(3, FAST_PAY.redemptionVoteDigest(epoch, order));
        try FAST_PAY.redeem(order, epoch, votes) {
            require(
                !paid[sequence] && outcome[sequence] != Outcome.Voided, "paid twice, or though it is void"
            );
            paid[sequence] = true;
            ++events;
        } catch {
            require(paid[sequence] || outcome[sequence] == Outcome.Voided, "a redemption was refused");
        }
    }

    /// @dev The same members again, so that their keys stay known. After a theft all orders that were upheld are open.
    function rotate(bool keysWereOut) external {
        uint64 epoch = FAST_PAY.epoch();
        Authority[] memory members = FAST_PAY.committee(epoch);
        address guardian = FAST_PAY.guardian();
        vm.prank(address(COUNCIL));
        FAST_PAY.install(members, guardian, keysWereOut ? 0 : epoch + 1, 0);
        ++events;
        for (uint64 i = 0; keysWereOut && i < NUMBERS; ++i) {
            if (outcome[i] == Outcome.Upheld) outcome[i] = Outcome.None;
        }
    }

    function wait(uint256 time) external {
        vm.warp(vm.getBlockTimestamp() + bound(time, 1, 8 days));
    }

    /// @dev For the bonds of those who uphold.
    receive() external payable {}

    function _upheld(uint64 sequence) private {
        require(asked[sequence] && outcome[sequence] == Outcome.None, "an order was upheld that cannot be");
        outcome[sequence] = Outcome.Upheld;
        bonded[sequence] = false;
        ++events;
    }

    function _votes(uint256 count, bytes32 digest) private view returns (bytes memory votes) {
        for (uint256 i = 0; i < count; ++i) {
            (uint8 v, bytes32 r, bytes32 s) = vm.sign(_keys[i], digest);
            // forge-lint: disable-next-line(unsafe-typecast) -- four members
            votes = abi.encodePacked(votes, uint8(i), r, s, v);
        }
    }

    function _number(uint64 sequence) private pure returns (uint64) {
        return sequence % NUMBERS;
    }
}
