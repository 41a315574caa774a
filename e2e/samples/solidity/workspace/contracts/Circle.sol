// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import "./Shape.sol";

contract ⟦circle⟧Circle is Shape {
    function area() external pure returns (uint256) {
        return 3;
    }
}
