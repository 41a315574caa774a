// How things are called.
package naming;

  // What stands on either side of a label.
  localparam int Padding = 4;

  // How many letters a label has room for.
  function automatic int ⟦label-width⟧label_width(int letters);
    return letters + Padding;
  endfunction

endpackage
