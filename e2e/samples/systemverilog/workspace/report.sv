module report;
  initial begin
    $display(geometry::⟦use-in-report⟧total_area(1, 2));
    $display(naming::⟦use-label-width⟧label_width(11));
    $display(measures::⟦use-measure-width⟧measure_width(3));
  end
endmodule
