module titles;
  initial begin
    $display("🧮📐📏🔺🔵🟥🔶🔷🟢🟣🟤🟠", naming::⟦behind-astral⟧label_width(4));
  end
endmodule
