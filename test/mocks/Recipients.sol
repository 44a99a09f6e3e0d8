// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IFastPay} from "../../contracts/interfaces/IFastPay.sol";

/// @title Does as it is told when ETH arrives
contract MoodyRecipient {
    enum Mood {
        Accepts,
        Reverts,
        BurnsGas,
        ReturnsMuch,
        RevertsWithMuch,
        Calls
    }

    Mood public mood;

    address public target;
    bytes public data;
    bool public called;
    bool public succeeded;
    bytes public answer;

    constructor(Mood mood_) {
        mood = mood_;
    }

    function setMood(Mood mood_) external {
        mood = mood_;
    }

    /// @dev Makes it call `target_` when ETH arrives. A call that fails does not make the receipt fail.
    function setCallback(address target_, bytes calldata data_) external {
        (mood, target, data) = (Mood.Calls, target_, data_);
    }

    /// @dev Claims all that there is, to itself.
    function claim(IFastPay fastPay, address asset) external {
        fastPay.claim(asset, address(this), fastPay.claimOf(address(this), asset));
    }

    function claim(IFastPay fastPay, address asset, address to, uint256 amount) external {
        fastPay.claim(asset, to, amount);
    }

    receive() external payable {
        Mood now_ = mood;
        if (now_ == Mood.Calls) {
            called = true;
            (succeeded, answer) = target.call(data);
        }
        if (now_ == Mood.Reverts) revert("no, thank you");
        if (now_ == Mood.BurnsGas) {
            assembly {
                invalid()
            }
        }
        assembly {
            switch now_
            case 3 { return(0, 60000) }
            case 4 { revert(0, 60000) }
        }
    }
}

/// @title Spends a fixed amount of gas on each receipt of ETH, and remembers that it did
/// @dev Costs about 110,000: five new storage slots. A test for allowances near the bound.
contract CostlyRecipient {
    uint256 public receipts;
    mapping(uint256 => uint256) public amounts;

    receive() external payable {
        for (uint256 i = 0; i < 4; ++i) {
            amounts[4 * receipts + i] = msg.value;
        }
        receipts += 1;
    }
}

/// @title An ordinary payment splitter that notes each receipt, and has no function that could call `claim`
contract Splitter {
    uint256 private immutable _slots;
    uint256[] private _notes;

    /// @param slots How many new storage slots a receipt takes.
    constructor(uint256 slots) {
        _slots = slots;
    }

    receive() external payable {
        for (uint256 i = 0; i < _slots; ++i) {
            _notes.push(msg.value);
        }
    }
}

/// @title Refuses ETH while anybody uses it, as contracts with a guard against re-entry do
contract Vault {
    bool private _entered;

    modifier guarded() {
        require(!_entered, "entered");
        _entered = true;
        _;
        _entered = false;
    }

    /// @dev As a flash loan does, it calls whatever its user wants.
    function poke(address target, bytes calldata data) external guarded {
        (bool success,) = target.call(data);
        require(success);
    }

    receive() external payable guarded {}
}
