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
    uint256 public gasAtReceipt;

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

    function claim(IFastPay fastPay, address asset) external {
        fastPay.claim(asset);
    }

    function claimTo(IFastPay fastPay, address asset, address to) external {
        fastPay.claimTo(asset, to);
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
/// @dev Costs about 44,000: two new storage slots. A test for allowances near the bound.
contract CostlyRecipient {
    uint256 public receipts;
    mapping(uint256 => uint256) public amounts;

    receive() external payable {
        amounts[receipts] = msg.value;
        receipts += 1;
    }
}
