import { Component } from "@angular/core";

@Component({ selector: "app-apart", templateUrl: "./pièce à part.html" })
export class ApartComponent {
  ⟦knock⟧knock: string = "toc, toc";
}
