import { Given } from "@cucumber/cucumber";

Given("⟦rooms⟧a house with {int} rooms", function (rooms: number) {
  this.rooms = rooms;
});

Given("⟦doubled⟧walls that are doubled", function () {
  this.walls = 2;
});
