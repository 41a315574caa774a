// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import "./Sums.sol";

contract House {
    function ⟦doubled⟧doubled(uint256 value) internal pure returns (uint256) {
        return value + value;
    }

    function rooms() external pure returns (uint256) {
        return ⟦use-doubled⟧doubled(Sums.total(1, 2));
    }
}
