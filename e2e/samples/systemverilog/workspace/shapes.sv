// Things that cover a part of the plane.
package shapes;

  virtual class shape;
    // The covered area, in square metres.
    pure virtual function int area();
  endclass

  class square extends shape;
    int side = 2;
    virtual function int ⟦square-area⟧area();
      return side * side;
    endfunction
  endclass

  function automatic bit is_flat(shape thing);
    return thing.⟦use-area⟧area() == 0;
  endfunction

endpackage
