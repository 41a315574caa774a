#pragma once

/// Anything that covers a part of the plane.
struct Shape {
  /// The covered area, in square metres.
  virtual double area() const = 0;
};

struct Circle : Shape {
  explicit Circle(double radius) : radius(radius) {}
  double ⟦circle-area⟧area() const override { return 3.14159 * radius * radius; }
  double radius;
};

struct Square : Shape {
  explicit Square(double side) : side(side) {}
  double ⟦square-area⟧area() const override { return side * side; }
  double side;
};

/// Adds up the areas of all shapes.
double ⟦declare-total-area⟧total_area(const Shape *const *shapes, int count);
