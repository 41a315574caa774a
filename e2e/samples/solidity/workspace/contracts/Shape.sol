// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

interface Shape {
    function area() external view returns (uint256);
}
