module main;
  initial begin
    $display(geometry::⟦use-total-area⟧total_area(1, 4));
  end
endmodule
