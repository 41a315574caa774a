// Areas of shapes.
package geometry;

  // Adds up both areas.
  function automatic int ⟦total-area⟧total_area(int first, int second);
    return first + second;
  endfunction

endpackage
