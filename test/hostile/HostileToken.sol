// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ZooToken} from "../tokens/WeirdTokens.sol";

/// @title A token of which each harm is a switch, and which can throw it at any time
/// @notice Good until it is told otherwise, as a token is that upgrades itself.
contract HostileToken is ZooToken {
    enum Harm {
        None,
        TakesAFee,
        RebasesUp,
        RebasesDown,
        ReturnsFalse,
        MovesAndReturnsFalse,
        ReturnsNothing,
        RevertsOnZero,
        RevertsOnSecondApproval,
        BlocksRecipients,
        BlocksSenders,
        IsPaused,
        ClaimsTooMuch,
        ClaimsNothing,
        ClaimsTheMost,
        RevertsOnBalance,
        TakesFromTheRecipient,
        CallsBack,
        BurnsAllGas,
        ReturnsMuch
    }

    Harm public harm;
    uint8 private immutable _decimals;
    uint256 private _multiplier = 100; // percent of what accounts hold, as a rebase changes it
    mapping(address => bool) public isBlocked;

    address private _target;
    bytes[] private _calls;
    uint256 public calls;
    bytes4[] public answers;

    constructor(uint8 decimals_) {
        _decimals = decimals_;
    }

    // ------------------------------------------------------------------------------------ switches

    function turn(Harm harm_) external {
        harm = harm_;
        _multiplier = harm_ == Harm.RebasesUp ? 300 : harm_ == Harm.RebasesDown ? 50 : 100;
    }

    function blockAddress(address account, bool blocked) external {
        isBlocked[account] = blocked;
    }

    /// @dev Makes each transfer call all of these before it moves anything.
    function setCallbacks(address target, bytes[] memory list) external {
        (harm, _target) = (Harm.CallsBack, target);
        delete _calls;
        for (uint256 i = 0; i < list.length; ++i) {
            _calls.push(list[i]);
        }
    }

    function numberOfAnswers() external view returns (uint256) {
        return answers.length;
    }

    // --------------------------------------------------------------------------------------- ERC-20

    function decimals() public view override returns (uint8) {
        return _decimals;
    }

    function balanceOf(address account) public view override returns (uint256) {
        uint256 held = super.balanceOf(account) * _multiplier / 100;
        if (harm == Harm.ClaimsTooMuch) return held + 1e30;
        if (harm == Harm.ClaimsNothing) return 0;
        if (harm == Harm.ClaimsTheMost) return type(uint256).max;
        if (harm == Harm.RevertsOnBalance) revert("no balance");
        return held;
    }

    function approve(address spender, uint256 value) public override returns (bool) {
        if (harm == Harm.RevertsOnSecondApproval) {
            require(value == 0 || allowance(msg.sender, spender) == 0, "approve zero first");
        }
        return super.approve(spender, value);
    }

    function transfer(address to, uint256 value) public override returns (bool) {
        if (harm == Harm.ReturnsFalse) return false;
        super.transfer(to, value);
        return _answer();
    }

    function transferFrom(address from, address to, uint256 value) public override returns (bool) {
        if (harm == Harm.ReturnsFalse) return false;
        super.transferFrom(from, to, value);
        return _answer();
    }

    function _update(address from, address to, uint256 value) internal override {
        if (from == address(0)) return super._update(from, to, value);
        Harm now_ = harm;
        require(now_ != Harm.IsPaused, "paused");
        require(now_ != Harm.RevertsOnZero || value > 0, "zero");
        require(now_ != Harm.BlocksRecipients || !isBlocked[to], "recipient blocked");
        require(now_ != Harm.BlocksSenders || !isBlocked[from], "sender blocked");
        if (now_ == Harm.BurnsAllGas) {
            assembly {
                invalid()
            }
        }
        if (now_ == Harm.CallsBack) _callBack();
        if (now_ == Harm.TakesFromTheRecipient && super.balanceOf(to) > 0) {
            return super._update(to, from, super.balanceOf(to));
        }
        if (now_ == Harm.TakesAFee) {
            super._update(from, address(this), value / 10);
            value -= value / 10;
        }
        super._update(from, to, value * 100 / _multiplier);
    }

    // ------------------------------------------------------------------------------------- private

    function _callBack() private {
        for (uint256 i = 0; i < _calls.length; ++i) {
            (bool success, bytes memory answer) = _target.call(_calls[i]);
            ++calls;
            answers.push(success ? bytes4(0) : bytes4(answer));
        }
    }

    function _answer() private view returns (bool) {
        if (harm == Harm.ReturnsNothing) {
            assembly {
                return(0, 0)
            }
        }
        if (harm == Harm.ReturnsMuch) {
            assembly {
                mstore(0, 1)
                return(0, 200000)
            }
        }
        return harm != Harm.MovesAndReturnsFalse;
    }
}
