// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import "./Sums.sol";
import "./étage un/pièce à part.sol";

contract Report {
    function report() external pure returns (uint256) {
        return Sums.⟦use-in-report⟧total(4, 5) + Door.⟦use-knock⟧knock();
    }

    function label() external pure returns (uint256) {
        return bytes(unicode"🎈🎈🎈🎈🎈🎈").length + Sums.⟦use-tag⟧tag("no. ", 7);
    }
}
