import { Given } from "@cucumber/cucumber";

Given("⟦label⟧the label {string} on the door", function (label: string) {
  this.label = label;
});
