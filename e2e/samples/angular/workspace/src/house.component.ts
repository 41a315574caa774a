import { Component } from "@angular/core";

@Component({ selector: "app-house", templateUrl: "./house.component.html" })
export class HouseComponent {
  /** How many rooms it has. */
  ⟦rooms⟧rooms: number = 4;

  ⟦tag⟧tag: string = "no. 7";
}
