// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

library Sums {
    uint256 internal constant NOTHING = 0;

    /// Adds up two numbers.
    function ⟦total⟧total(uint256 one, uint256 other) internal pure returns (uint256) {
        return NOTHING + one + other;
    }
}
