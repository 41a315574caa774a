// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

library Sums {
    /// Adds up two numbers.
    function ⟦total⟧total(uint256 one, uint256 other) internal pure returns (uint256) {
        return one + other;
    }

    /// Puts a label on a number.
    function ⟦tag⟧tag(string memory label, uint256 value) internal pure returns (uint256) {
        return bytes(label).length + value;
    }
}
