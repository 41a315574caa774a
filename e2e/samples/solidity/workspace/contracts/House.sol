// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import "./Shape.sol";
import "./Sums.sol";

contract House {
    function flat(⟦use-shape⟧Shape shape) external view returns (bool) {
        return shape.area() == 0;
    }

    function rooms() external pure returns (uint256) {
        return Sums.⟦use-total⟧total(1, 2);
    }
}
