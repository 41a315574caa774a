import { Component } from "@angular/core";

@Component({ selector: "app-house", templateUrl: "./house.component.html" })
export class HouseComponent {
  walls: number = 4;

  /** How many rooms it has. */
  ⟦rooms⟧rooms: number = 4;
}
