module main;
  // Both halves of a pair.
  function automatic int ⟦doubled⟧doubled(int value);
    return value + value;
  endfunction

  initial begin
    $display(⟦use-doubled⟧doubled(geometry::total_area(1, 4)));
  end
endmodule
