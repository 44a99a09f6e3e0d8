// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @dev A token that anyone can mint, the root of the zoo.
abstract contract ZooToken is ERC20("Zoo", "ZOO") {
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}

/// @title Keeps a hundredth of each transfer
contract FeeToken is ZooToken {
    function _update(address from, address to, uint256 value) internal override {
        if (from == address(0) || to == address(0)) return super._update(from, to, value);
        super._update(from, address(this), value / 100);
        super._update(from, to, value - value / 100);
    }
}

/// @title Keeps all of each transfer
contract BlackHoleToken is ZooToken {
    function _update(address from, address to, uint256 value) internal override {
        super._update(from, from == address(0) ? to : address(this), value);
    }
}

/// @title Delivers nothing and takes from the recipient
contract ThiefToken is ZooToken {
    function _update(address from, address to, uint256 value) internal override {
        if (from == address(0)) super._update(from, to, value);
        else if (balanceOf(to) > 0) super._update(to, from, 1);
    }
}

/// @title Does as it is told when a transfer is asked of it, and answers as it is told
contract MoodyToken is ZooToken {
    enum Mood {
        Good,
        ReturnsNothing,
        ReturnsFalse,
        ReturnsTwo,
        ReturnsOneByte,
        Reverts,
        RevertsWithMuch,
        BurnsGas,
        Returns31Bytes
    }

    Mood public mood;
    uint256 public fakeBalance;

    function setMood(Mood mood_) external {
        mood = mood_;
    }

    /// @dev What is added to the balance that it claims for everybody.
    function setFakeBalance(uint256 fakeBalance_) external {
        fakeBalance = fakeBalance_;
    }

    function balanceOf(address owner) public view override returns (uint256) {
        return super.balanceOf(owner) + fakeBalance;
    }

    function transfer(address to, uint256 value) public override returns (bool) {
        _answer(_msgSender(), to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) public override returns (bool) {
        _spendAllowance(from, _msgSender(), value);
        _answer(from, to, value);
        return true;
    }

    function _answer(address from, address to, uint256 value) private {
        Mood now_ = mood;
        if (now_ == Mood.Good || now_ == Mood.ReturnsNothing) {
            _transfer(from, to, value);
        }
        if (now_ == Mood.BurnsGas) {
            assembly {
                invalid()
            }
        }
        assembly {
            switch now_
            case 1 { return(0, 0) }
            case 2 {
                mstore(0, 0)
                return(0, 0x20)
            }
            case 3 {
                mstore(0, 2)
                return(0, 0x20)
            }
            case 4 {
                mstore(0, not(0))
                return(0, 1)
            }
            case 5 { revert(0, 0) }
            case 6 { revert(0, 200000) }
            case 8 {
                mstore(0, 0)
                return(0, 0x1f)
            }
        }
    }
}

/// @title Calls back before each transfer, as ERC-777 does
contract CallbackToken is ZooToken {
    address public target;
    bytes public data;
    bool public called;
    bool public succeeded;
    bytes public answer;

    /// @dev Makes the next transfers call `target_` before they move anything.
    function setCallback(address target_, bytes calldata data_) external {
        (target, data) = (target_, data_);
    }

    function _update(address from, address to, uint256 value) internal override {
        if (target != address(0)) {
            called = true;
            (succeeded, answer) = target.call(data);
        }
        super._update(from, to, value);
    }
}

/// @title Has no permit, but a fallback that accepts everything, as WETH does
contract PhantomPermitToken is ZooToken {
    fallback() external {}
}
